#include "facts/collectives/issued_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tlparse {
namespace {

// Larger groups have no `unknown`: each of their ranks would be a row.
constexpr std::size_t kMostMembers = 65'536;

// "[0, 1, 5]" → 0, 1, 5.
std::vector<std::int64_t> RanksOf(std::string_view text) {
  std::vector<std::int64_t> ranks;
  std::int64_t number = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
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

// Members as the pg_config of dumps and profiles says; an entry without a name (Gloo of 2.14) says
// nothing.
Result<void> LoadConfigured(Database& database, IssuedJob& job) {
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT DISTINCT j.key, j.value ->> '$.ranks' "
          "FROM profile p, json_each(p.metadata, '$.pg_config') j "
          "WHERE p.run_id = ?1 AND p.kind = 'flight_recorder' AND json_type(j.value) = 'object' "
          "UNION SELECT DISTINCT j.value ->> '$.pg_name', j.value ->> '$.ranks' "
          "FROM profile p, json_each(p.metadata, '$.distributedInfo.pg_config') j "
          "WHERE p.run_id = ?1 AND p.kind = 'kineto' AND json_type(j.value) = 'object'"));
  rows.Bind(1, job.run_id);
  std::map<std::string, std::set<std::vector<std::int64_t>>> members;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    if (!rows.Text(0).empty() && !rows.Text(1).empty())
      members[std::string(rows.Text(0))].insert(RanksOf(rows.Text(1)));
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
  return {};
}

using RanksByGroup = std::map<std::string, std::set<std::int64_t>, std::less<>>;

// The ranks whose generated code has a collective of the group.
Result<RanksByGroup> LoadScheduled(Database& database, std::int64_t run_id,
                                   const std::optional<std::int64_t>& launch) {
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT DISTINCT c.group_name, p.rank FROM (SELECT DISTINCT u.content_id, r.process_id "
          "FROM collective_use_row u JOIN record_row r ON r.id = u.record_id) x "
          "JOIN collective_row c ON c.content_id = x.content_id "
          "JOIN process p ON p.id = x.process_id "
          "JOIN log_file f ON f.id = p.log_file_id LEFT JOIN launch n ON n.id = p.launch_id "
          "WHERE f.run_id = ?1 AND c.group_name IS NOT NULL "
          "AND p.rank IS NOT NULL AND (?2 IS NULL OR n.ordinal IS NULL OR n.ordinal = ?2)"));
  rows.Bind(1, run_id);
  rows.Bind(2, launch);
  RanksByGroup scheduled;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return scheduled;
    scheduled[std::string(rows.Text(0))].insert(rows.Int(1));
  }
}

// The ranks of the logs.
Result<std::set<std::int64_t>> LoadRanksOfLogs(Database& database, std::int64_t run_id,
                                               const std::optional<std::int64_t>& launch) {
  ASSIGN_OR_RETURN(Statement rows,
                   database.Prepare("SELECT DISTINCT p.rank FROM process p "
                                    "JOIN log_file f ON f.id = p.log_file_id "
                                    "LEFT JOIN launch n ON n.id = p.launch_id "
                                    "WHERE f.run_id = ?1 AND p.rank IS NOT NULL "
                                    "AND (?2 IS NULL OR n.ordinal IS NULL OR n.ordinal = ?2)"));
  rows.Bind(1, run_id);
  rows.Bind(2, launch);
  std::set<std::int64_t> ranks;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return ranks;
    ranks.insert(rows.Int(0));
  }
}

// The ranks of all dumps, or of all profiles.
Result<std::set<std::int64_t>> LoadRanksOf(Database& database, std::int64_t run_id,
                                           std::string_view kind) {
  ASSIGN_OR_RETURN(Statement rows,
                   database.Prepare("SELECT DISTINCT rank FROM profile "
                                    "WHERE run_id = ? AND kind = ? AND rank IS NOT NULL"));
  rows.Bind(1, run_id);
  rows.Bind(2, kind);
  std::set<std::int64_t> dumped;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return dumped;
    dumped.insert(rows.Int(0));
  }
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

Result<void> LoadCutDumps(Database& database, IssuedJob& job) {
  constexpr std::string_view kDamage =
      "('cut_profile', 'refused_pickle', 'bad_runtime_file', 'damaged_input')";
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(fmt::format(
          "WITH damage AS (SELECT i.profile_id, min(i.id) AS id "
          "FROM import_log i WHERE i.run_id = ?1 AND i.profile_id IS NOT NULL AND i.code IN {} "
          "GROUP BY i.profile_id) SELECT p.rank, p.path, i.byte_offset, i.message FROM damage d "
          "JOIN profile p ON p.id = d.profile_id JOIN import_log_row i ON i.id = d.id "
          "WHERE p.kind = 'flight_recorder' AND NOT EXISTS (SELECT 1 "
          "FROM profile w WHERE w.run_id = p.run_id AND w.kind = p.kind AND w.id <> p.id "
          "AND w.rank IS p.rank AND replace(w.path, '.json', '') = replace(p.path, '.json', '') "
          "AND w.id NOT IN (SELECT profile_id FROM damage)) "
          "ORDER BY p.rank IS NULL, p.rank, p.path",
          kDamage)));
  rows.Bind(1, job.run_id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    const std::optional<std::int64_t> rank = rows.OptionalInt(0);
    job.cut_dumps.push_back({rank ? fmt::format("{}", *rank) : std::string(),
                             std::string(rows.Text(1)), rows.OptionalInt(2),
                             std::string(rows.Text(3))});
    for (IssuingRank& one : job.ranks)
      one.is_cut |= rank ? one.rank == rank : one.path == rows.Text(1);
  }
}

Result<void> LoadMembers(Database& database, const std::optional<std::int64_t>& launch,
                         IssuedJob& job) {
  RETURN_IF_ERROR(LoadConfigured(database, job));
  ASSIGN_OR_RETURN(const RanksByGroup scheduled, LoadScheduled(database, job.run_id, launch));
  const bool has_dumps = job.dump_ranks > 0;
  ASSIGN_OR_RETURN(const std::set<std::int64_t> dumped,
                   LoadRanksOf(database, job.run_id, has_dumps ? "flight_recorder" : "kineto"));
  ASSIGN_OR_RETURN(std::set<std::int64_t> everyone, LoadRanksOfLogs(database, job.run_id, launch));
  everyone.insert(dumped.begin(), dumped.end());
  for (const auto& [name, ranks] : scheduled) everyone.insert(ranks.begin(), ranks.end());
  std::map<std::int64_t, std::size_t> index_of;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    if (job.ranks[i].rank) index_of.emplace(*job.ranks[i].rank, i);
  }
  for (const std::int64_t rank : dumped) {
    const auto [found, is_new] = index_of.try_emplace(rank, job.ranks.size());
    if (is_new) job.ranks.push_back(SilentRank(job, rank, true));
  }
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
      if (!has_dumps || !rank.has_file || rank.is_cut || !rank.is_whole || HasEnded(group))
        group.unknown.push_back(found->second);
    }
  }
  for (MessageGroup& group : job.message_groups) SetRanksOfGroup(job, group);
  return {};
}

}  // namespace tlparse
