// A launch as a tree, from the tables `role`, `process` and `process_end`: its roles, which process is
// whose child, how each ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

struct TreeRole {
  std::int64_t id = 0;
  std::string name, evidence;
  bool is_sure = true;
  std::vector<std::int64_t> ranks;  // ascending
};

struct TreeEnd {
  std::string kind, evidence;
  std::optional<std::int64_t> last_us, exit_code, signal;
  bool is_bystander = false;  // it stopped after another had failed or stopped
  std::optional<std::int64_t> ended_by_process_id;
};

struct TreeNode {
  std::int64_t process_id = 0;
  std::int64_t role_id = 0;                       // 0: none
  std::optional<std::int64_t> parent_process_id;  // of a child, where it is known
  std::string child_kind, child_evidence;         // empty: it is none
  std::optional<TreeEnd> end;                     // nothing: the job is still watched
};

struct JobTree {
  std::vector<TreeRole> roles;
  std::unordered_map<std::int64_t, TreeNode> nodes;  // by process

  const TreeNode* Find(std::int64_t process_id) const;
  // nullptr: it has none.
  const TreeRole* RoleOf(std::int64_t process_id) const;
};
Result<JobTree> LoadJobTree(Database& database, std::int64_t run_id, std::int64_t launch);

// "replicas or shards, ranks 0-7: they compile the same functions"
std::string Describe(const TreeRole& role);

}  // namespace tlparse
