#include "facts/cost/estimates.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace tlparse {
namespace {

struct Node {
  bool is_fused;
  double ns;
};

// op3, op4_op5: nodes that the scheduler made, not an extern kernel's name.
bool IsFused(std::string_view name) {
  return name.size() > 2 && name.starts_with("op") && name[2] >= '0' && name[2] <= '9';
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
  // Records of a process lie within a range: the range is found by key.
  const std::string of_profile =
      profile_id ? fmt::format(
                       " AND o.record_id BETWEEN (SELECT q.first_record_id "
                       "FROM profile x JOIN process q ON q.id = x.process_id "
                       "WHERE x.id = {0}) AND (SELECT q.last_record_id "
                       "FROM profile x JOIN process q ON q.id = x.process_id WHERE x.id = {0})",
                       *profile_id)
                 : std::string();
  ASSIGN_OR_RETURN(
      Statement ops,
      database.Prepare("SELECT o.graph_id, o.name, o.estimated_ns "
                       "FROM op_runtime o JOIN process p ON p.id = o.process_id "
                       "JOIN log_file f ON f.id = p.log_file_id "
                       "WHERE f.run_id = ? AND o.graph_id IS NOT NULL AND o.name IS NOT NULL" +
                       of_profile + " ORDER BY o.graph_id, o.record_id, o.ordinal"));
  ops.Bind(1, run_id);
  std::map<std::int64_t, std::vector<Node>> graphs;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, ops.Step());
    if (!has_row) break;
    graphs[ops.Int(0)].push_back({IsFused(ops.Text(1)), ops.Real(2)});
  }
  std::map<std::pair<std::int64_t, std::int64_t>, double> estimates;
  ASSIGN_OR_RETURN(
      Statement kernels,
      database.Prepare("SELECT id FROM kernel WHERE graph_id = ?1 AND code_line IS NOT NULL "
                       "AND (debug_handle IS NOT NULL OR NOT EXISTS (SELECT 1 "
                       "FROM kernel k WHERE k.graph_id = ?1 AND k.debug_handle IS NOT NULL "
                       "AND k.code_line IS NOT NULL)) ORDER BY code_line, ordinal"));
  for (const auto& [graph_id, nodes] : graphs) {
    std::vector<std::int64_t> ids;
    kernels.Bind(1, graph_id);
    while (true) {
      ASSIGN_OR_RETURN(const bool has_row, kernels.Step());
      if (!has_row) break;
      ids.push_back(kernels.Int(0));
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
