// Compares two runs of several ranks each: pairs up the ranks, and makes one comparison for all
// equal pairs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/compiles/vllm_start.h"
#include "facts/diff/diff.h"
#include "facts/diff/digest_difference.h"
#include "facts/diff/memory_difference.h"

namespace tlparse {

// Pairs of ranks whose classes (`tlparse ranks`) are the same on both sides: one pair is compared
// for all.
struct RankComparison {
  std::size_t count = 0;         // of pairs
  std::string a_ranks, b_ranks;  // "0-3,6"
  DiffAnswer diff;               // of the pair with the lowest rank
};

struct RunComparison {
  std::vector<RankComparison> comparisons;  // most pairs first
  std::string only_a_ranks, only_b_ranks;   // ranks without a partner; empty: none
  std::size_t left_out = 0;                 // comparisons beyond the first 16
  std::optional<DigestDifference> digests;  // of all pairs; nothing: not both sides have any
  std::optional<MemoryDifference> memory;   // nothing: not both sides have any
  std::optional<VllmStartPair> starts;      // the last ones; nothing: not both sides have one
  bool IsEqual() const;                     // in everything but times and memory
};

// Ranks are paired by number, logs without one by name; a side with one participant is paired with
// every one of the other. Sides that name a rank are one pair. Where a side has no log, only the
// profiles are compared, of all ranks or the one named. kNotFound: no such run or rank.
Result<RunComparison> AnalyzeRunDiff(const DiffSide& a, const DiffSide& b,
                                     const DiffOptions& options);

}  // namespace tlparse
