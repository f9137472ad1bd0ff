// The bytes that are alive after each event of a recording.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Calls `take` with each event's ordinal, -1 (before the first) and those up to `event_count` - 1 in
// turn, and the bytes that are alive after it. Memory does not depend on the number of events: of
// many the allocations are read several times.
Result<void> ForEachMoment(
    Database& database, std::int64_t snapshot_id, std::int64_t event_count,
    const std::function<void(std::int64_t ordinal, std::int64_t bytes)>& take);

}  // namespace tlparse
