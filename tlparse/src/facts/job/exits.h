// How the processes of a job ended, where `tlparse run` started it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

struct ProcessExit {
  std::int64_t profile_id = 0, ordinal = 0;  // its row of run_process
  std::int64_t pid = 0;
  std::optional<std::int64_t> rank;        // nothing: the command itself
  std::optional<std::int64_t> process_id;  // of `process`: its log is here
  std::string host;
  std::optional<std::int64_t> started_us, ended_us;  // no end: it lived on
  std::optional<std::int64_t> exit_code, signal;     // at most one; neither: not known

  bool HasFailed() const { return signal || exit_code.value_or(0) != 0; }
  // Somebody asked it to end: the user, a launcher whose other rank has failed, a scheduler.
  bool WasAsked() const;
};

// Of the ranks, and of the command that started them, in order of their ends. Empty: no run.json was
// read.
Result<std::vector<ProcessExit>> LoadExits(Database& database, std::int64_t run_id);

// "SIGTERM" or "exit code 1", if all of these processes ended so; else empty.
std::string HowAllEnded(const std::vector<ProcessExit>& exits,
                        const std::vector<std::int64_t>& process_ids);

// "SIGKILL"; "signal 99".
std::string SignalName(std::int64_t number);

}  // namespace tlparse
