// Whether two runs of a program had the same results: hashes of kernels, autotuning choices and
// outputs (run_digest), compared call by call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "facts/job/job.h"
#include "store/database.h"

namespace tlparse {

// One kernel, choice or output of a graph that differs in at least one call.
struct DigestChange {
  std::string kind;  // kernel, choice, output
  std::string label, function, graph, name;
  std::string ranks;                                // of side a; those in which it differs
  std::int64_t call_count = 0, compared_count = 0;  // calls in which it differs; of how many
  std::optional<std::int64_t> first_call;           // in which it differs; nothing: not in the log
  std::string a_value, b_value;  // in that call; empty: not logged, or no such part on that side
  bool is_only_a = false, is_only_b = false;  // in that call
};

struct DigestDifference {
  std::int64_t call_count = 0;  // runs of graphs that both sides hashed
  std::int64_t kernel_count = 0, choice_count = 0, output_count = 0;  // compared
  std::int64_t only_a_call_count = 0, only_b_call_count = 0;          // hashed on one side only
  std::vector<DigestChange> changes;  // kernels, choices, outputs; in order of the compiles
};

struct DigestSide {
  Database* database = nullptr;
  const Job* job = nullptr;
};

Result<bool> HasDigests(Database& database);

// Calls are paired by compile id, graph and the number that the program gave them. Nothing if a side
// has hashed none.
Result<std::optional<DigestDifference>> CompareDigests(
    const DigestSide& a, const DigestSide& b,
    const std::vector<std::pair<RankIndex, RankIndex>>& pairs);

}  // namespace tlparse
