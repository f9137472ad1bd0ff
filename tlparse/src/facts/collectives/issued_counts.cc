// Dumps without entries: what their pg_status counts of each group.
#include "queries/facts/collectives/issued_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "facts/collectives/issued_group.h"

namespace tlparse {
namespace {

struct CountedRank {
  std::size_t index = 0;  // in IssuedJob::ranks
  std::int64_t enqueued = 0, completed = 0;
};

struct CountedGroup {
  std::string title;
  std::vector<CountedRank> ranks;
};

Result<std::vector<CountedGroup>> LoadCounted(Database& database, const IssuedJob& job) {
  std::map<std::int64_t, std::size_t> index_of;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    if (job.ranks[i].rank) index_of.emplace(*job.ranks[i].rank, i);
  }
  std::vector<CountedGroup> groups;
  std::string name;
  FOR_EACH_ROW(const CountedCalls& row, Query<CountedCalls>(database, {.run_id = job.run_id})) {
    const auto found = index_of.find(row.rank);
    if (found == index_of.end()) continue;
    if (groups.empty() || name != row.name) {
      name = row.name;
      groups.push_back({fmt::format("group {} ({})", row.description, row.name), {}});
    }
    groups.back().ranks.push_back({found->second, row.enqueued, row.completed});
  }
  return groups;
}

// "last enqueued and last completed: ranks 0,1: #42, #41; rank 2: #41, #41"
std::string CountsText(const IssuedJob& job, const CountedGroup& group) {
  constexpr std::size_t kMost = 6;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>> by_counts;
  for (const CountedRank& one : group.ranks)
    by_counts[{one.enqueued, one.completed}].push_back(one.index);
  std::string text = "Last enqueued and last completed: ";
  std::size_t count = 0;
  for (const auto& [counts, ranks] : by_counts) {
    if (++count > kMost) return text + "; …";
    text += fmt::format("{}{}: #{}, #{}", count == 1 ? "" : "; ", RanksText(job, ranks),
                        counts.first, counts.second);
  }
  return text;
}

// Ranks that have completed all that they have enqueued, while all others have enqueued more and
// completed no more; or all have enqueued as much, and completed less.
void FindInCounts(const IssuedJob& job, const CountedGroup& group,
                  std::vector<CollectiveFinding>& findings) {
  std::int64_t least = INT64_MAX, most = 0, most_completed = -1;
  for (const CountedRank& one : group.ranks) {
    least = std::min(least, one.enqueued);
    most = std::max(most, one.enqueued);
    most_completed = std::max(most_completed, one.completed);
  }
  std::vector<std::size_t> behind, others;
  bool is_behind_idle = true;
  for (const CountedRank& one : group.ranks) {
    (one.enqueued == least ? behind : others).push_back(one.index);
    if (one.enqueued == least) is_behind_idle &= one.completed == one.enqueued;
  }
  CollectiveFinding finding;
  finding.query = fmt::format(
      "SELECT id, rank, metadata ->> '$.pg_status' AS pg_status FROM profile "
      "WHERE run_id = {} AND kind = 'flight_recorder' ORDER BY rank",
      job.run_id);
  finding.detail = CountsText(job, group) +
                   ", by pg_status, which also counts sends and receives. "
                   "No dump has entries";
  if (least < most && least >= 0 && is_behind_idle && most_completed == least) {
    finding.kind = FindingKind::kCollectiveNotReached;
    finding.severity = FindingSeverity::kWarning;
    finding.title = fmt::format(
        "{} had enqueued nothing on {} after #{} when the recorder was "
        "dumped; {} had enqueued more and completed no more",
        RanksText(job, behind), group.title, least, RanksText(job, others));
    finding.ranks = behind;
    finding.waiting = others;
    finding.cause = "fewer calls were enqueued";
    finding.advice = fmt::format("look at what {} did after its last call: {}",
                                 RanksText(job, behind), "the stack of its process, its log");
    if (behind.size() > 1)
      finding.advice = fmt::format("look at what {} did after their last call: {}",
                                   RanksText(job, behind), "the stacks of their processes");
  } else if (least == most && most_completed < least && group.ranks.size() > 1) {
    finding.kind = FindingKind::kStuck;
    finding.severity = FindingSeverity::kNote;
    finding.title = fmt::format("{} have enqueued #{} of {} and not completed it",
                                RanksText(job, behind), least, group.title);
    finding.detail += ". A dump of a job that runs can look the same";
    finding.waiting = behind;
    finding.advice = kLookForWatchdog;
  } else {
    return;
  }
  finding.group = group.title;
  findings.push_back(std::move(finding));
}

}  // namespace

Result<void> FindCounted(Database& database, const IssuedJob& job,
                         std::vector<CollectiveFinding>& findings) {
  ASSIGN_OR_RETURN(const std::vector<CountedGroup> groups, LoadCounted(database, job));
  for (const CountedGroup& group : groups) FindInCounts(job, group, findings);
  return {};
}

}  // namespace tlparse
