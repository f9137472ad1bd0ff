// Several logs of one rank in one launch: copies of one log, logs of two jobs that wrote into one
// folder, logs of helper processes. A part of LoadParticipants (participants.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/job/participants.h"
#include "store/database.h"

namespace tlparse {

// The file of the user's outermost frame where the process began its first compile; empty: no compile
// of the log has such a stack.
Result<std::string> ScriptOf(Database& database, std::int64_t process_id);

// Fills in RunParticipant::copy_of: logs with the same bytes, and logs whose records are the first
// ones of another log, as of a file that was copied while it grew. `begin` to `end`: one launch, by
// rank.
Result<void> MarkCopies(Database& database, std::vector<RunParticipant>::iterator begin,
                        std::vector<RunParticipant>::iterator end);

// Fills in `script`, `is_of_other_job` and `is_of_second_job`, and orders the logs of each rank:
// first that of the launch's job, last the copies. `begin` to `end`: one launch, by rank.
Result<void> SeparateJobs(Database& database, std::vector<RunParticipant>::iterator begin,
                          std::vector<RunParticipant>::iterator end);

}  // namespace tlparse
