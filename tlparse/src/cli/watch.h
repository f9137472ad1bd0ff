// The command `tlparse watch`, and the same for a command that we started.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/watch_options.h"

namespace tlparse {

// Returns the exit code of the command.
int RunWatch(std::span<const std::string> arguments);

// A job that this process has started.
class StartedJob {
 public:
  virtual ~StartedJob() = default;
  // Waits so long, or until the job has ended. True: it has.
  virtual bool WaitForEnd(std::chrono::microseconds longest) = 0;
  // The findings that are open, the most urgent first; called between two steps.
  virtual void SeeFindings(const std::vector<Finding>& findings) = 0;
  // It has ended and its logs were read: what is written now is read with the other files.
  virtual Result<void> Complete() = 0;
};
// Follows the logs until the job ends, then makes the rest of the database and the report. Returns
// the exit code that the same watch would have.
Result<int> WatchJob(const WatchOptions& options, StartedJob& job);

}  // namespace tlparse
