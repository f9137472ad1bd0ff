// Failed compiles that did not fail the program: the function then ran eagerly.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/result.h"
#include "facts/job/job.h"
#include "store/database.h"

namespace tlparse {

// Compiles, by their database ids, that a graph break ended.
struct BrokenCompiles {
  // Their frame runs eagerly.
  std::set<std::int64_t> eager;
  // The traced code raised an exception that nothing in it handles, and the log of the participant has
  // no compile after it: the eager run of the frame raises it again, where it does the same.
  std::set<std::int64_t> raised;
  // Functions that torch.func called when the frame before them ran eagerly: each cannot be compiled
  // there. By the compile that broke; they are in `eager` as well.
  std::map<std::int64_t, std::vector<std::int64_t>> transformed;
};
Result<BrokenCompiles> FindBrokenCompiles(Database& database, const Job& job);

// Whether all of these compiles had torch._dynamo.config.suppress_errors set: a function that cannot
// be compiled runs eagerly.
Result<bool> AreErrorsSuppressed(Database& database, const std::vector<std::int64_t>& compile_ids);

}  // namespace tlparse
