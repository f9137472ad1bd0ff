// Which trees of guards the compiles of a job have.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/result.h"
#include "facts/job/job.h"
#include "store/database.h"

namespace tlparse {

// Contents of guard_row by compile, in the order of the log. A loaded compile has one for each code
// that was loaded.
using GuardContents = std::map<std::int64_t, std::vector<std::int64_t>>;

Result<GuardContents> LoadGuardContents(Database& database, const Job& job);

}  // namespace tlparse
