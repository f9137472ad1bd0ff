// What the program of a rank did while others waited for it, by its own names (record_function).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "facts/collectives/profiled_waits.h"
#include "store/database.h"

namespace tlparse {

// The sum without the longest: one delay is a compile, or a pause.
std::int64_t SteadyNs(const std::vector<TimeSpan>& spans);

// Sets ProfiledWait::activity: the part of the rank's program that took half of the steady times, and that
// hardly ran elsewhere, or took other ranks less than half as long.
Result<void> SetActivityOfWait(Database& database, std::int64_t run_id,
                               const std::vector<TimeSpan>& awaited, ProfiledWait& wait);

}  // namespace tlparse
