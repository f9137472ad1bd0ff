// What the thread of the steps did outside of calls of compiled graphs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"
#include "facts/cost/cost.h"
#include "store/database.h"

namespace tlparse {

// Divides the profile's time outside of `inside` (start and end in ns; sorted by start, within the
// window) into CostProfile::outside. A profile that marks no steps gets none: which of its threads
// counts is not known.
Result<void> FillOutside(Database& database, CostProfile& profile,
                         const std::vector<std::pair<std::int64_t, std::int64_t>>& inside);

}  // namespace tlparse
