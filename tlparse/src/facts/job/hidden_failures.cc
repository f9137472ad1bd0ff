#include "facts/job/hidden_failures.h"

#include <fmt/format.h>

#include <algorithm>

#include "queries/facts/job/hidden_failures.h"

namespace tlparse {

std::string HiddenFailure::Subject() const {
  const std::string owner = owner_rank         ? fmt::format("rank {}", *owner_rank)
                            : is_owner_command ? "the command"
                                               : fmt::format("pid {}", owner_pid);
  if (!thread) return fmt::format("A child (pid {}) of {}", exit.pid, owner);
  if (thread->empty()) return fmt::format("A {} of {}", is_of_task ? "task" : "thread", owner);
  return fmt::format("{} {} of {}", is_of_task ? "Task" : "Thread", *thread, owner);
}

Result<std::vector<HiddenFailure>> LoadHiddenFailures(Database& database, std::int64_t run_id) {
  std::vector<HiddenFailure> failures;
  FOR_EACH_ROW(const HiddenFailureOfRun& row,
               Query<HiddenFailureOfRun>(database, {.run_id = run_id})) {
    HiddenFailure failure{{},
                          {},
                          row.owner_pid,
                          row.owner_ordinal == 0,
                          row.owner_rank,
                          row.raised_us ? *row.raised_us : row.ended_us.value_or(0),
                          row.is_of_job};
    failure.exit.profile_id = row.profile_id;
    failure.exit.ordinal = row.ordinal;
    failure.exit.pid = row.pid;
    if (row.thread) failure.thread = std::string(*row.thread);
    failure.is_of_task = row.is_of_task;
    if (!row.thread) {
      failure.exit.ended_us = row.ended_us;
      failure.exit.exit_code = row.exit_code;
      failure.exit.signal = row.signal;
      failure.exit.stopped_at = row.stopped_at;
      failure.exit.fault_thread = row.fault_thread;
    }
    if (row.exception_id) failure.exit.raised = ExceptionOfRow(row, row.owner_rank);
    if (!failure.exit.WasAsked() && failure.time_us > 0) failures.push_back(std::move(failure));
  }
  std::vector<ProcessExit*> exits;
  for (HiddenFailure& one : failures) exits.push_back(&one.exit);
  RETURN_IF_ERROR(TellPrinted(database, run_id, exits));
  return failures;
}

const HiddenFailure* FirstHidden(const std::vector<HiddenFailure>& failures,
                                 const ProcessExit* waiting, std::int64_t until_us) {
  const auto found = std::find_if(failures.begin(), failures.end(), [&](const HiddenFailure& one) {
    const bool is_own = waiting != nullptr && one.owner_pid == waiting->pid;
    const bool is_of_ranks = one.owner_rank && (waiting == nullptr || waiting->rank);
    return one.time_us <= until_us &&
           (is_own || is_of_ranks || (waiting == nullptr && (one.thread || one.is_of_job)));
  });
  return found == failures.end() ? nullptr : &*found;
}

}  // namespace tlparse
