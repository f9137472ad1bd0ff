#include "cli/status_filter.h"

#include <set>

namespace tlparse {

void KeepAsked(const AskedParticipant& asked, const JobTree& tree,
               std::vector<ProcessStatus>& rows) {
  if (!asked.IsGiven()) return;
  std::set<std::int64_t> of_rank;
  for (const ProcessStatus& row : rows)
    if (row.rank && row.rank == asked.rank) of_rank.insert(row.process_id);
  std::erase_if(rows, [&](const ProcessStatus& row) {
    const TreeNode* const node = tree.Find(row.process_id);
    const bool is_of_rank =
        of_rank.contains(row.process_id) ||
        (node != nullptr && node->parent_process_id && of_rank.contains(*node->parent_process_id));
    return (asked.rank && !is_of_rank) || (asked.pid && row.pid != *asked.pid);
  });
}

}  // namespace tlparse
