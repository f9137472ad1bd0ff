#include "facts/cost/estimates.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/ascii.h"
#include "queries/facts/cost/estimates.h"

namespace tlparse {
namespace {

struct Node {
  bool is_fused;
  double ns;
};

// op3, op4_op5: nodes that the scheduler made, not an extern kernel's name.
bool IsFused(std::string_view name) {
  return name.size() > 2 && name.starts_with("op") && IsDigit(name[2]);
}

std::vector<double> Merged(const std::vector<Node>& nodes) {
  std::vector<double> runs;
  bool was_fused = false;
  for (const Node& node : nodes) {
    if (node.is_fused && was_fused) {
      runs.back() += node.ns;
    } else {
      runs.push_back(node.ns);
    }
    was_fused = node.is_fused;
  }
  return runs;
}

}  // namespace

Result<std::map<std::pair<std::int64_t, std::int64_t>, double>> KernelEstimates(
    Database& database, std::int64_t run_id, std::optional<std::int64_t> profile_id) {
  std::map<std::int64_t, std::vector<Node>> graphs;
  FOR_EACH_ROW(const OpEstimate& row,
               Query<OpEstimate>(database, {.run_id = run_id, .profile_id = profile_id})) {
    graphs[row.graph_id].push_back({IsFused(row.name), row.estimated_ns});
  }
  std::map<std::pair<std::int64_t, std::int64_t>, double> estimates;
  ASSIGN_OR_RETURN(PreparedQuery<KernelCalledInCode> kernels,
                   PreparedQuery<KernelCalledInCode>::Make(database));
  for (const auto& [graph_id, nodes] : graphs) {
    std::vector<std::int64_t> ids;
    FOR_EACH_ROW(const KernelCalledInCode& kernel, kernels.Run({.graph_id = graph_id})) {
      ids.push_back(kernel.id);
    }
    std::vector<double> runs;
    for (const Node& node : nodes) runs.push_back(node.ns);
    if (runs.size() != ids.size()) runs = Merged(nodes);
    if (runs.size() != ids.size()) continue;
    for (std::size_t i = 0; i < ids.size(); ++i) estimates[{graph_id, ids[i]}] = runs[i];
  }
  return estimates;
}

}  // namespace tlparse
