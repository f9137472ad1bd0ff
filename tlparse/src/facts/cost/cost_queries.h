// The SQL of cost.h. Internal to facts/cost.
#pragma once

#include <string>
#include <vector>

#include "facts/cost/cost.h"

namespace tlparse {

// "WITH win(profile_id, rank, launch, start_ns, end_ns) AS (…)": what is counted. Append more of it.
std::string WindowSql(const std::vector<CostProfile>& profiles);

// A WITH clause: the windows as the common table expression `win`, then the kernels that ran in
// them as `cost`. Append a SELECT.
std::string KernelCostSql(const std::vector<CostProfile>& profiles);

// A whole statement; its columns are named like the members of CostRow.
std::string CostSql(CostBy by, const std::vector<CostProfile>& profiles);

}  // namespace tlparse
