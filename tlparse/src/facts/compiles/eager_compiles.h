// Failed compiles that did not fail the program: the function then ran eagerly.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "base/result.h"
#include "facts/job/job.h"
#include "store/database.h"

namespace tlparse {

// Compiles that a graph break ended and whose frame runs eagerly: by their database ids.
Result<std::set<std::int64_t>> CompilesRunEagerly(Database& database, const Job& job);

// Whether all of these compiles had torch._dynamo.config.suppress_errors set: a function that cannot
// be compiled runs eagerly.
Result<bool> AreErrorsSuppressed(Database& database, const std::vector<std::int64_t>& compile_ids);

}  // namespace tlparse
