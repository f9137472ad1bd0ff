// The chunk slices/<profile>: the slices of one profile for the timeline. Bounded: the longest
// slices one by one; of the others, how many began in each short interval of time and how long they
// ran.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// `origin_us` is what times in chunks count from.
Result<std::string> SlicesChunk(Database& database, std::int64_t run_id, std::int64_t profile_id,
                                std::int64_t origin_us);

// How many rows a chunk holds: those of the whole run, divided among its measured profiles.
struct RowBudget {
  std::int64_t of_run;
  std::int64_t least, most;  // of one profile
};
Result<std::int64_t> RowsOfProfile(Database& database, std::int64_t run_id,
                                   const RowBudget& budget);

}  // namespace tlparse
