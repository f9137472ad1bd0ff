// What an answer counts. Internal to facts/cost.
#pragma once

#include "facts/cost/cost.h"

namespace tlparse {

// The answer without rows. kNotFound: the run has no profile (of this rank, with these steps).
Result<CostAnswer> BeginCost(Database& database, const CostOptions& options);

}  // namespace tlparse
