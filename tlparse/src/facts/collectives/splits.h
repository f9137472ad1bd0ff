// Split sizes of all_to_all_single: each rank has its own, and those of two ranks have to fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tlparse {

struct Splits {
  std::vector<std::int64_t> from, to;  // how many rows come from each rank, and go to each
};

// Of the arguments "[3, 3], [3, 2]"; nothing: others, or a size that the text does not have.
std::optional<Splits> SplitsOf(std::string_view arguments);

// The rank of each, and its splits, where they are known.
using SplitsByRank = std::vector<std::pair<std::optional<std::int64_t>, std::optional<Splits>>>;
// What is said of splits that differ between ranks; empty: these are all ranks of the group, and what
// one sends is not what the other expects.
std::string NoteOfSplits(SplitsByRank ranks, const std::string& graph);

}  // namespace tlparse
