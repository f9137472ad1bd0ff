// The chunks time and time/<process>: where the time of compiles went, of the timed events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Of one process by compile; of all processes of the run, without `process_id`, by launch and
// function. kNotFound: the run has no such process.
Result<std::string> TimeChunk(Database& database, std::int64_t run_id,
                              std::optional<std::int64_t> process_id);

}  // namespace tlparse
