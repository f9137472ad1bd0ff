#include "facts/job/job_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/plural.h"
#include "facts/job/participants.h"
#include "facts/job/roles.h"
#include "queries/facts/job/job_tree.h"

namespace tlparse {

const TreeNode* JobTree::Find(std::int64_t process_id) const {
  const auto found = nodes.find(process_id);
  return found == nodes.end() ? nullptr : &found->second;
}

const TreeRole* JobTree::RoleOf(std::int64_t process_id) const {
  const TreeNode* const node = Find(process_id);
  const auto found = std::find_if(roles.begin(), roles.end(), [&](const TreeRole& one) {
    return node != nullptr && one.id == node->role_id;
  });
  return found == roles.end() ? nullptr : &*found;
}

Result<JobTree> LoadJobTree(Database& database, std::int64_t run_id, std::int64_t launch) {
  JobTree tree;
  FOR_EACH_ROW(const RoleOfLaunch& row,
               Query<RoleOfLaunch>(database, {.run_id = run_id, .launch = launch}))
    tree.roles.push_back(
        {row.id, std::string(row.name), std::string(row.evidence), row.is_sure, {}});
  FOR_EACH_ROW(const NodeOfLaunch& row,
               Query<NodeOfLaunch>(database, {.run_id = run_id, .launch = launch})) {
    TreeNode& node = tree.nodes[row.id];
    node.process_id = row.id;
    node.role_id = row.role_id.value_or(0);
    node.parent_process_id = row.parent_process_id;
    node.child_kind = row.child_kind;
    node.child_evidence = row.child_evidence;
    if (row.kind)
      node.end = TreeEnd{std::string(*row.kind),
                         std::string(row.evidence.value_or("")),
                         row.last_us,
                         row.exit_code,
                         row.signal,
                         row.is_bystander.value_or(false),
                         row.ended_by_process_id};
    for (TreeRole& role : tree.roles) {
      const bool is_new = role.ranks.empty() || role.ranks.back() != row.rank;
      if (role.id == node.role_id && row.rank && is_new) role.ranks.push_back(*row.rank);
    }
  }
  return tree;
}

std::string Describe(const TreeRole& role) {
  std::string ranks = FormatRankRanges(role.ranks);
  constexpr std::size_t kMost = 60;
  if (const std::size_t comma = ranks.rfind(',', kMost);
      ranks.size() > kMost && comma != std::string::npos)
    ranks = fmt::format("{},… ({} in all)", ranks.substr(0, comma), role.ranks.size());
  // What one rank alone has in common with itself is no evidence.
  return fmt::format(
      "{}, rank{} {}{}", role.name, PluralS(role.ranks.size()), ranks,
      role.ranks.size() == 1 && role.name == kEqualRanks ? "" : ": " + role.evidence);
}

}  // namespace tlparse
