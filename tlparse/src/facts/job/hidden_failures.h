// Failures that no process ended by: of a thread, a task of asyncio, or of a child. What waits for
// them waits in vain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/job/exits.h"
#include "store/database.h"

namespace tlparse {

struct HiddenFailure {
  ProcessExit exit;                   // of a thread or task: its process, with what it raised alone
  std::optional<std::string> thread;  // its name, maybe empty; nothing: a child failed
  std::int64_t owner_pid = 0;         // the process of the thread; the parent of the child
  bool is_owner_command = false;
  std::optional<std::int64_t> owner_rank;
  std::int64_t time_us = 0;
  bool is_of_job = false;   // the owner has a rank or a log
  bool is_of_task = false;  // `thread` is the name of a task

  // "Thread judge of rank 0", "Task pump of the command", "A child (pid 12) of the command".
  std::string Subject() const;
};

// In order of time. A child that was asked to end has not failed.
Result<std::vector<HiddenFailure>> LoadHiddenFailures(Database& database, std::int64_t run_id);

// The first before `until_us` that explains why `waiting`, or if it has a rank another rank, waits in
// vain; null: why the job does. Null: there is none.
const HiddenFailure* FirstHidden(const std::vector<HiddenFailure>& failures,
                                 const ProcessExit* waiting, std::int64_t until_us);

}  // namespace tlparse
