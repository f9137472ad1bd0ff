#include "facts/collectives/issued_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "queries/facts/collectives/issued_members.h"

namespace tlparse {
namespace {

// Larger groups have no `unknown`: each of their ranks would be a row.
constexpr std::size_t kMostMembers = 65'536;

// Members as the pg_config of dumps and profiles says. An entry without a name (Gloo of 2.14) is of
// the group that was made last, and numbers its members from 0: the job has as many ranks.
Result<std::set<std::int64_t>> LoadConfigured(Database& database, IssuedJob& job) {
  std::map<std::string, std::set<std::vector<std::int64_t>>> members;
  std::set<std::int64_t> of_job;
  FOR_EACH_ROW(const ConfiguredRanks& row,
               Query<ConfiguredRanks>(database, {.run_id = job.run_id})) {
    if (row.ranks.empty()) continue;
    std::vector<std::int64_t> ranks = RanksInText(row.ranks);
    if (row.group_name.empty()) {
      of_job.insert(ranks.begin(), ranks.end());
    } else {
      members[std::string(row.group_name)].insert(std::move(ranks));
    }
  }
  for (IssuedGroup& group : job.groups) {
    const auto found = members.find(group.name);
    // Files that contradict each other tell nothing.
    if (found != members.end() && found->second.size() == 1) group.members = *found->second.begin();
  }
  for (MessageGroup& group : job.message_groups) {
    const auto found = members.find(group.name);
    if (found != members.end() && found->second.size() == 1) group.members = *found->second.begin();
  }
  return of_job;
}

using RanksByGroup = std::map<std::string, std::set<std::int64_t>, std::less<>>;

// The ranks whose generated code has a collective of the group.
Result<RanksByGroup> LoadScheduled(Database& database, std::int64_t run_id,
                                   const std::optional<std::int64_t>& launch) {
  RanksByGroup scheduled;
  FOR_EACH_ROW(const ScheduledGroup& row,
               Query<ScheduledGroup>(database, {.run_id = run_id, .launch = launch})) {
    scheduled[std::string(row.group_name)].insert(row.rank);
  }
  return scheduled;
}

// The ranks of the logs.
Result<std::set<std::int64_t>> LoadRanksOfLogs(Database& database, std::int64_t run_id,
                                               const std::optional<std::int64_t>& launch) {
  std::set<std::int64_t> ranks;
  FOR_EACH_ROW(const RankOfLogs& row,
               Query<RankOfLogs>(database, {.run_id = run_id, .launch = launch})) {
    ranks.insert(row.rank);
  }
  return ranks;
}

// The ranks of all dumps, or of all profiles.
Result<std::set<std::int64_t>> LoadRanksOf(Database& database, std::int64_t run_id,
                                           std::string_view kind) {
  std::set<std::int64_t> dumped;
  FOR_EACH_ROW(const RankOfProfiles& row,
               Query<RankOfProfiles>(database, {.run_id = run_id, .kind = kind})) {
    dumped.insert(row.rank);
  }
  return dumped;
}

Result<std::set<std::int64_t>> LoadRanksOfRecorders(Database& database, std::int64_t run_id) {
  std::set<std::int64_t> ranks;
  FOR_EACH_ROW(const RankOfRecorder& row, Query<RankOfRecorder>(database, {.run_id = run_id})) {
    ranks.insert(row.rank);
  }
  return ranks;
}

IssuingRank SilentRank(const IssuedJob& job, std::int64_t number, bool has_file) {
  IssuingRank rank;
  rank.rank = number;
  rank.name = fmt::format("{}", number);
  rank.has_file = has_file;
  rank.is_cut = std::any_of(job.cut_dumps.begin(), job.cut_dumps.end(),
                            [&](const CutDump& dump) { return dump.rank == rank.name; });
  rank.is_empty = has_file && !rank.is_cut;
  return rank;
}

Result<void> LoadCounts(Database& database, IssuedJob& job) {
  FOR_EACH_ROW(const CallsOfStatus& row, Query<CallsOfStatus>(database, {.run_id = job.run_id})) {
    for (IssuingRank& one : job.ranks) {
      if (!one.is_empty || one.rank != row.rank) continue;
      one.counted_calls = row.calls;
      one.last_of_all = row.last_of_all;
    }
  }
  return {};
}

// Some rank has ended a call of it, for which most need all members.
bool HasEnded(const IssuedGroup& group) {
  return std::any_of(group.issued.begin(), group.issued.end(), [](const auto& of_rank) {
    return std::any_of(of_rank.begin(), of_rank.end(),
                       [](const IssuedCollective& one) { return one.IsDone(); });
  });
}

// The members of c10d's group of all ranks: `everyone`. Of others the ranks that schedule it.
std::set<std::int64_t> MembersOf(const IssuedGroup& group, const RanksByGroup& scheduled,
                                 const std::set<std::int64_t>& everyone) {
  if (!group.members.empty()) return {group.members.begin(), group.members.end()};
  if (group.description == "default_pg") return everyone;
  const auto found = scheduled.find(group.name);
  return found == scheduled.end() ? std::set<std::int64_t>() : found->second;
}

// Which ranks the ranks of a group are: by their own calls, else by the group's members. In c10d's
// group of all ranks they are the same.
void SetRanksOfGroup(const IssuedJob& job, MessageGroup& group) {
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    if (!job.ranks[i].rank) continue;
    const auto member = std::find(group.members.begin(), group.members.end(), *job.ranks[i].rank);
    if (member != group.members.end()) {
      group.rank_of[member - group.members.begin()] = i;
    } else if (group.members.empty() && group.description == "default_pg") {
      group.rank_of[*job.ranks[i].rank] = i;
    }
  }
  for (std::size_t i = 0; i < group.ranks.size(); ++i)
    group.rank_of[group.issued[i].front().own] = group.ranks[i];
}

}  // namespace

std::vector<std::int64_t> RanksInText(std::string_view text) {
  std::vector<std::int64_t> ranks;
  std::int64_t number = -1;
  for (const char c : text) {
    if (IsDigit(c)) {
      number =
          std::min<std::int64_t>(1'000'000'000, std::max<std::int64_t>(number, 0) * 10 + (c - '0'));
    } else if (number >= 0) {
      ranks.push_back(number);
      number = -1;
    }
  }
  if (number >= 0) ranks.push_back(number);
  return ranks;
}

Result<void> LoadCutDumps(Database& database, IssuedJob& job) {
  FOR_EACH_ROW(const DamagedDump& dump, Query<DamagedDump>(database, {.run_id = job.run_id})) {
    const std::optional<std::int64_t> rank = dump.rank;
    job.cut_dumps.push_back({rank ? fmt::format("{}", *rank) : std::string(),
                             std::string(dump.path), dump.byte_offset, std::string(dump.message)});
    for (IssuingRank& one : job.ranks)
      one.is_cut |= rank ? one.rank == rank : one.path == dump.path;
  }
  return {};
}

Result<void> AddDumpedRanks(Database& database, IssuedJob& job) {
  ASSIGN_OR_RETURN(const std::set<std::int64_t> dumped,
                   LoadRanksOf(database, job.run_id, "flight_recorder"));
  for (const std::int64_t rank : dumped) job.ranks.push_back(SilentRank(job, rank, true));
  return {};
}

Result<void> LoadMembers(Database& database, const std::optional<std::int64_t>& launch,
                         IssuedJob& job) {
  ASSIGN_OR_RETURN(const std::set<std::int64_t> of_job, LoadConfigured(database, job));
  ASSIGN_OR_RETURN(const RanksByGroup scheduled, LoadScheduled(database, job.run_id, launch));
  const bool has_dumps = job.dump_ranks > 0;
  ASSIGN_OR_RETURN(const std::set<std::int64_t> dumped,
                   LoadRanksOf(database, job.run_id, has_dumps ? "flight_recorder" : "kineto"));
  ASSIGN_OR_RETURN(std::set<std::int64_t> everyone, LoadRanksOfLogs(database, job.run_id, launch));
  everyone.insert(dumped.begin(), dumped.end());
  everyone.insert(of_job.begin(), of_job.end());
  for (const auto& [name, ranks] : scheduled) everyone.insert(ranks.begin(), ranks.end());
  ASSIGN_OR_RETURN(const std::set<std::int64_t> recorded,
                   LoadRanksOfRecorders(database, job.run_id));
  std::map<std::int64_t, std::size_t> index_of;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    if (job.ranks[i].rank) index_of.emplace(*job.ranks[i].rank, i);
  }
  std::set<std::int64_t> named = of_job;
  named.insert(dumped.begin(), dumped.end());
  for (const std::int64_t rank : named) {
    const auto [found, is_new] = index_of.try_emplace(rank, job.ranks.size());
    if (is_new) job.ranks.push_back(SilentRank(job, rank, dumped.contains(rank)));
  }
  RETURN_IF_ERROR(LoadCounts(database, job));
  for (IssuedGroup& group : job.groups) {
    std::set<std::int64_t> members = MembersOf(group, scheduled, everyone);
    group.has_members = !members.empty();
    if (members.size() > kMostMembers) continue;
    for (const std::size_t index : group.ranks) {
      if (job.ranks[index].rank) members.erase(*job.ranks[index].rank);
    }
    for (const std::int64_t member : members) {
      const auto [found, is_new] = index_of.try_emplace(member, job.ranks.size());
      if (is_new) job.ranks.push_back(SilentRank(job, member, dumped.count(member) > 0));
      const IssuingRank& rank = job.ranks[found->second];
      if (!has_dumps || !rank.has_file || rank.is_cut || !rank.is_whole || rank.counted_calls > 0 ||
          HasEnded(group) || (rank.is_empty && !recorded.contains(member)))
        group.unknown.push_back(found->second);
    }
  }
  for (MessageGroup& group : job.message_groups) SetRanksOfGroup(job, group);
  return {};
}

}  // namespace tlparse
