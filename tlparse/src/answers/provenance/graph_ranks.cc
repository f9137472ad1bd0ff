#include "answers/provenance/graph_ranks.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "queries/answers/provenance/provenance.h"

namespace tlparse {

Result<GraphRanks> LoadGraphRanks(Database& database, const GraphFilter& filter,
                                  const PeakBytes& peak) {
  GraphRanks graphs;
  using Place = std::tuple<std::int64_t, std::int64_t, std::string, std::int64_t, std::int64_t,
                           std::string, std::int64_t>;
  std::map<Place, std::vector<std::int64_t>> known;
  FOR_EACH_ROW(const GraphWithKernels& row,
               Query<GraphWithKernels>(database, {.rank = filter.asked.rank,
                                                  .pid = filter.asked.pid,
                                                  .run_id = filter.run_id,
                                                  .launch = filter.launch})) {
    if (filter.each || !row.rank || row.is_measured || peak.HasKernelsOf(row.id)) {
      std::set<std::int64_t>& own = graphs[row.id];
      if (row.rank) own.insert(*row.rank);
      continue;
    }
    std::vector<std::int64_t>& alike =
        known[{row.run_id, row.launch_id.value_or(0), std::string(row.label), row.generation,
               row.ordinal, std::string(row.direction.value_or("")), row.content_id}];
    // A further log of a rank is no other rank.
    const auto found = std::find_if(alike.begin(), alike.end(), [&](std::int64_t graph_id) {
      return !graphs[graph_id].contains(*row.rank);
    });
    graphs[found == alike.end() ? alike.emplace_back(row.id) : *found].insert(*row.rank);
  }
  return graphs;
}

std::vector<std::int64_t> IdsOf(const GraphRanks& graphs) {
  std::vector<std::int64_t> ids;
  for (const auto& [graph_id, ranks] : graphs) ids.push_back(graph_id);
  return ids;
}

}  // namespace tlparse
