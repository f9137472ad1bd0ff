// Finds the process that wrote a recorder dump, a tritonparse log or a text of TORCH_LOGS.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Sets process_id, rank and process_note of a run's profiles of the kinds flight_recorder,
// torch_logs and tritonparse:
//
//   by pid, if the file has one: the process of that number (and rank, if both have one)
//   by rank, if the file or its name has one: the process of that rank; of several (launches)
//     the one whose log is nearest in time
//   a dump without rank by its frames: the only process whose log holds the generated code
//
// Nothing is guessed: if several match equally well, process_note says so.
Result<void> MatchProcesses(Database& database, std::int64_t run_id);

}  // namespace tlparse
