#include "facts/job/role_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "artifacts/common/text/python_traceback.h"
#include "facts/job/graph_forms.h"
#include "facts/job/participants.h"
#include "queries/facts/job/role_members.h"

namespace tlparse {
namespace {

std::string NameOfFile(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string NameOfFunction(const Job& job, const JobCompile& compile) {
  return fmt::format("{} {}:{}", job.string(compile.function_id),
                     compile.file_id < 0 ? "" : NameOfFile(job.string(compile.file_id)),
                     compile.line);
}

std::vector<RoleMember> MembersOf(const Job& job, const LogDamage& damage) {
  std::vector<RoleMember> members;
  std::vector<std::size_t> of_participant(job.participants().size(), SIZE_MAX);
  for (std::size_t i = 0; i < job.participants().size(); ++i) {
    const JobParticipant& one = job.participants()[i];
    if (!one.rank || one.is_extra_log || one.is_of_other_job) continue;
    of_participant[i] = members.size();
    RoleMember& member = members.emplace_back();
    member.index = static_cast<RankIndex>(i);
    member.rank = *one.rank;
    member.ends_early = damage.EndsEarly(job, member.index);
  }
  std::map<std::pair<std::int32_t, std::int32_t>, std::map<std::int64_t, std::string>> names;
  for (const JobCompile& compile : job.compiles()) {
    const std::size_t at = of_participant[static_cast<std::size_t>(compile.participant)];
    if (at == SIZE_MAX || compile.is_synthetic || compile.function_id < 0) continue;
    std::string& name = names[{compile.function_id, compile.file_id}][compile.line];
    if (name.empty()) name = NameOfFunction(job, compile);
    members[at].functions.insert(name);
    if (compile.graph_content != 0) members[at].graphs[compile.slot] = compile.graph_content;
  }
  return members;
}

// What called the compiles of each member, and whether torch.distributed.pipelining did.
Result<void> LoadCallers(Database& database, const Job& job, std::vector<RoleMember>& members,
                         RoleEvidence& evidence) {
  std::vector<RoleMember*> of_participant(job.participants().size());
  for (RoleMember& one : members) of_participant[static_cast<std::size_t>(one.index)] = &one;
  ASSIGN_OR_RETURN(PreparedQuery<RoleFrame> frames, PreparedQuery<RoleFrame>::Make(database));
  std::unordered_map<std::int64_t, std::string> callers;  // by stack
  for (const JobCompile& compile : job.compiles()) {
    if (compile.stack_id == 0) continue;
    const auto [caller, is_new] = callers.try_emplace(compile.stack_id);
    if (is_new) {
      FOR_EACH_ROW(const RoleFrame& row, frames.Run({.stack_id = compile.stack_id})) {
        evidence.has_sends |=
            row.file.find("torch/distributed/pipelining/") != std::string_view::npos;
        if (caller->second.empty() && IsUserFile(row.file))
          caller->second = fmt::format("{} {}", row.function, NameOfFile(row.file));
      }
    }
    RoleMember* const member = of_participant[static_cast<std::size_t>(compile.participant)];
    if (member != nullptr && !caller->second.empty() && !member->callers.contains(caller->second))
      member->callers.insert(caller->second);
  }
  return {};
}

// The groups of ranks, and the functions with collectives.
Result<void> LoadGroups(Database& database, const Job& job, RoleEvidence& evidence) {
  std::map<std::string, std::set<std::int64_t>> groups;
  FOR_EACH_ROW(const RoleGroup& row, Query<RoleGroup>(database, {.run_id = job.run_id()}))
    groups[std::string(row.name)].insert(row.rank);
  std::unordered_map<std::int64_t, std::vector<std::set<std::int64_t>*>> groups_of_content;
  FOR_EACH_ROW(const GroupOfContent& row, Query<GroupOfContent>(database))
    groups_of_content[row.content_id].push_back(&groups[fmt::format("graphs {}", row.group_name)]);
  std::set<std::tuple<std::int32_t, std::int32_t, std::int64_t>> known;
  ASSIGN_OR_RETURN(const std::vector<CollectivesOfGraph>* const uses,
                   LoadCollectives(database, job));
  for (const CollectivesOfGraph& row : *uses) {
    const JobCompile* const compile = row.compile_id ? job.FindCompile(*row.compile_id) : nullptr;
    if (compile == nullptr) continue;
    if (compile->function_id >= 0 &&
        known.emplace(compile->function_id, compile->file_id, compile->line).second)
      evidence.with_collectives.insert(NameOfFunction(job, *compile));
    const auto& rank = job.participants()[static_cast<std::size_t>(compile->participant)].rank;
    const auto found = groups_of_content.find(row.content_id);
    if (!rank || found == groups_of_content.end()) continue;
    for (std::set<std::int64_t>* const group : found->second) group->insert(group->end(), *rank);
  }
  for (auto& [name, ranks] : groups) {
    if (!ranks.empty()) evidence.groups.push_back(std::move(ranks));
  }
  return {};
}

// "; their process groups: ranks 0,1; 0,2; 1,3; 2,3"; empty: no smaller ones are known, or not of all ranks alike.
std::string SmallerGroups(const std::vector<RoleMember>& members, const RoleEvidence& evidence) {
  constexpr std::size_t kMost = 8;
  std::map<std::int64_t, std::size_t> counts;
  for (const RoleMember& one : members) counts[one.rank] = 0;
  std::set<std::set<std::int64_t>> smaller;
  for (const std::set<std::int64_t>& group : evidence.groups) {
    const bool is_of_them = std::all_of(group.begin(), group.end(),
                                        [&](std::int64_t rank) { return counts.contains(rank); });
    if (group.size() > 1 && group.size() < counts.size() && is_of_them) smaller.insert(group);
  }
  for (const std::set<std::int64_t>& group : smaller) {
    for (const std::int64_t rank : group) ++counts[rank];
  }
  const bool are_alike = std::all_of(counts.begin(), counts.end(), [&](const auto& one) {
    return one.second > 0 && one.second == counts.begin()->second;
  });
  if (!are_alike) return {};
  if (smaller.size() > kMost)
    return fmt::format("; they are in {} smaller process groups", smaller.size());
  std::string text;
  for (const std::set<std::int64_t>& group : smaller)
    text += fmt::format("{}{}", text.empty() ? "; their process groups: ranks " : "; ",
                        FormatRankRanges({group.begin(), group.end()}));
  return text;
}

Result<std::vector<Role>> MakeRoles(Database& database, const Job& job, const LogDamage& damage) {
  std::vector<RoleMember> members = MembersOf(job, damage);
  RoleEvidence evidence;
  const bool are_equal = std::all_of(members.begin(), members.end(), [&](const RoleMember& one) {
    return one.functions == members.front().functions && one.graphs == members.front().graphs;
  });
  if (!are_equal) {
    ASSIGN_OR_RETURN(const FirstRow<RunWithSends> sends,
                     First(Query<RunWithSends>(database, {.run_id = job.run_id()})));
    evidence.has_sends = sends->has_sends;
    ASSIGN_OR_RETURN(const GraphForms* const forms, GraphForms::Load(database, job));
    for (RoleMember& member : members) {
      for (auto& [slot, graph] : member.graphs) graph = forms->FormOf(graph);
    }
    RETURN_IF_ERROR(LoadCallers(database, job, members, evidence));
    RETURN_IF_ERROR(LoadGroups(database, job, evidence));
  }
  if (are_equal && members.size() > 1) RETURN_IF_ERROR(LoadGroups(database, job, evidence));
  std::vector<Role> roles = FindRoles(members, evidence);
  if (roles.size() == 1 && roles.front().is_sure)
    roles.front().evidence += SmallerGroups(members, evidence);
  return roles;
}

}  // namespace

Result<const std::vector<CollectivesOfGraph>*> LoadCollectives(Database& database, const Job& job) {
  return job.RowsOfWhole<CollectivesOfGraph>([&](const JobRecords& whole) {
    return Query<CollectivesOfGraph>(database, {.in_logs = whole.InLogs("record_id")});
  });
}

Result<const std::vector<Role>*> LoadRoles(Database& database, const Job& job,
                                           const LogDamage& damage) {
  return job.FoundOnce<std::vector<Role>>([&] { return MakeRoles(database, job, damage); });
}

}  // namespace tlparse
