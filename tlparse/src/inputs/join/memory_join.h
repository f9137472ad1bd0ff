// What allocations belong to: of each site (memory.sql) the compile, graph, Python line and category.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Makes the links of a run's sites anew, and the sites of the allocations of its profiles. After the
// joins of profiles and processes.
Result<void> JoinMemory(Database& database, std::int64_t run_id);

}  // namespace tlparse
