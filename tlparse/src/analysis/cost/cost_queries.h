// The SQL of cost.h. Not for others.
#pragma once

#include <string>
#include <vector>

#include "analysis/cost/cost.h"

namespace tlparse {

// The windows as a common table expression `win`, and behind it the kernels that ran in them as
// `cost`: what follows is a SELECT.
std::string KernelCostSql(const std::vector<CostProfile>& profiles);

// A whole statement; its columns are named like the members of CostRow.
std::string CostSql(CostBy by, const std::vector<CostProfile>& profiles);

}  // namespace tlparse
