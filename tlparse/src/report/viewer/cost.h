// The chunk cost/<profile>: the time measured by one profile, divided as by `tlparse cost`.
// Bounded: each table has the rows that cost most, and the number of rows left out.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// kNotFound: the run has no profile of that id that measured runs. `origin_us` is what times in
// chunks count from.
Result<std::string> CostChunk(Database& database, std::int64_t run_id, std::int64_t profile_id,
                              std::int64_t origin_us);

}  // namespace tlparse
