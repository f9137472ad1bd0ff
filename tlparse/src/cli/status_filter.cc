#include "cli/status_filter.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "cli/rank_output.h"
#include "facts/compiles/user_frames.h"

namespace tlparse {

std::string KeepAsked(const AskedParticipant& asked, const JobTree& tree,
                      std::vector<ProcessStatus>& rows) {
  if (!asked.IsGiven()) return {};
  const std::size_t all = rows.size();
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
  std::string only = asked.Only(all - rows.size(), "process");
  return only;
}

Result<void> PrintStacks(Database& database, const std::vector<ProcessStatus>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<std::int64_t>> ranks;
  ShownStacks stacks;
  for (const ProcessStatus& row : rows) {
    if (row.compile_id == 0 || row.state == RankState::kBetweenCompiles) continue;
    ASSIGN_OR_RETURN(const std::string frames, UserFramesOf(database, row.compile_id));
    if (row.rank)
      ranks[{row.Title(), frames}].push_back(*row.rank);
    else
      stacks.Add(fmt::format("{} (process {})", row.Title(), row.pid), frames);
  }
  for (auto& [what, who] : ranks)
    stacks.Add(fmt::format("{} ({})", what.first, RanksText(who)), what.second);
  for (const std::string& line : stacks.lines()) PrintWrapped(line, 0, 2);
  return {};
}

}  // namespace tlparse
