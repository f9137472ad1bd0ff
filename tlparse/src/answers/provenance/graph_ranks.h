// Which graphs of different ranks have the same kernels: one of them stands for all.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/result.h"
#include "facts/cost/peak_bytes.h"
#include "facts/job/asked_participant.h"
#include "store/database.h"

namespace tlparse {

// The ranks of each graph that stands for others, or for itself; none: the process has no rank.
using GraphRanks = std::map<std::int64_t, std::set<std::int64_t>>;

struct GraphFilter {
  AskedParticipant asked;
  std::optional<std::int64_t> run_id, launch;
  bool each = false;  // each graph stands for itself
};

// Graphs are together if their launch, label, place in the compile and kernels are equal, and no
// profile or recording of the allocator says anything of one of them alone.
Result<GraphRanks> LoadGraphRanks(Database& database, const GraphFilter& filter,
                                  const PeakBytes& peak);

// Ascending.
std::vector<std::int64_t> IdsOf(const GraphRanks& graphs);

}  // namespace tlparse
