// The sides that the page compares: ranks, launches or runs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "facts/diff/diff.h"
#include "store/database.h"

namespace tlparse {

// A side of a comparison: its key in addresses, what it is called, the ranks that it stands for.
struct NamedSide {
  std::string key, name, ranks;
  DiffSide side;
};
using SidePairs = std::vector<std::pair<NamedSide, NamedSide>>;

// `pair` as of DiffChunk. Empty: there is nothing to compare.
Result<SidePairs> FindPairs(Database& database, std::int64_t run_id, std::string_view pair);

}  // namespace tlparse
