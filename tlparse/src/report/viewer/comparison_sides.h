// The sides that the page compares: ranks, launches or runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "facts/diff/diff.h"
#include "store/database.h"

namespace tlparse {

// A database that is served beside others.
struct NamedDatabase {
  std::int64_t number = 0;
  std::string name;
  Database* database = nullptr;
};

// What the page of a run compares. `served`: all databases that are served, with its own, if they
// are several.
struct ComparedRun {
  Database* database = nullptr;
  std::int64_t run_id = 0;
  std::span<const NamedDatabase> served;
};

// A side of a comparison: its key in addresses, what it is called, the ranks that it stands for.
struct NamedSide {
  std::string key, name, ranks;
  DiffSide side;
};
using SidePairs = std::vector<std::pair<NamedSide, NamedSide>>;

// `pair` as of DiffChunk. Empty: there is nothing to compare.
Result<SidePairs> FindPairs(const ComparedRun& run, std::string_view pair);

}  // namespace tlparse
