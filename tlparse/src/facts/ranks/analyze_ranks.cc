// The answer of `tlparse ranks`, of a job or a part of it.
#include <algorithm>
#include <utility>

#include "facts/job/read_transaction.h"
#include "facts/job/role_members.h"
#include "facts/ranks/absent_ranks.h"
#include "facts/ranks/rank_notes.h"
#include "facts/ranks/ranks.h"

namespace tlparse {
namespace {

// `answer` has its cache.
Result<void> FillRanks(Database& database, bool with_op_differences, RanksAnswer& answer) {
  answer.damage = answer.collectives.damage = answer.execution.damage = answer.cache.damage;
  // The parts work on the job that is loaded; they get it for the time being, and hand it back.
  std::swap(answer.collectives.job, answer.cache.job);
  std::swap(answer.collectives.graphs, answer.cache.graphs);
  const Result<void> collectives = FindCollectiveClasses(database, answer.collectives);
  std::swap(answer.collectives.job, answer.execution.job);
  std::swap(answer.collectives.graphs, answer.execution.graphs);
  RETURN_IF_ERROR(collectives);
  Result<void> execution = FindExecutionClasses(database, answer.execution);
  if (execution && with_op_differences) execution = FindOpDifferences(database, answer.execution);
  std::swap(answer.execution.job, answer.cache.job);
  std::swap(answer.execution.graphs, answer.cache.graphs);
  RETURN_IF_ERROR(execution);
  return ClassifyRanks(database, answer);
}

}  // namespace

Result<RanksAnswer> AnalyzeRanks(Database& database, const RanksOptions& options) {
  ASSIGN_OR_RETURN(const ReadTransaction transaction, ReadTransaction::Begin(database));
  RanksAnswer answer;
  const CacheOptions cache_options{
      .run = options.run, .launch = options.launch, .rank = {}, .with_closest_keys = false};
  ASSIGN_OR_RETURN(answer.cache, AnalyzeCache(database, cache_options));
  RETURN_IF_ERROR(FillRanks(database, options.with_op_differences, answer));
  RETURN_IF_ERROR(FindAbsent(database, options, answer));
  AddNotes(answer);
  return answer;
}

// Ranks of the rest of the job are not absent.
Result<RanksAnswer> AnalyzeRanksPart(Database& database, const RanksAnswer& whole,
                                     const std::vector<RankIndex>& members) {
  RanksAnswer answer;
  ASSIGN_OR_RETURN(answer.cache, AnalyzeCachePart(database, whole.cache, members));
  RETURN_IF_ERROR(FillRanks(database, true, answer));
  AddNotes(answer);
  return answer;
}

Result<CacheAnswer> TakeCache(Database& database, const CacheOptions& options, RanksAnswer ranks) {
  RETURN_IF_ERROR(AddClosestKeys(database, options, ranks.cache));
  RETURN_IF_ERROR(AddOneArtifact(database, options, ranks.cache));
  return std::move(ranks.cache);
}

Result<CollectiveAnswer> TakeCollectives(Database& database, const CollectiveOptions& options,
                                         RanksAnswer ranks) {
  CollectiveAnswer answer = std::move(ranks.collectives);
  answer.job = std::move(ranks.cache.job);
  answer.graphs = std::move(ranks.cache.graphs);
  RETURN_IF_ERROR(AddIssued(database, answer.job.launch(), options, answer));
  return answer;
}

Result<ExecutionAnswer> TakeExecution(Database& database, const ExecutionOptions& /*options*/,
                                      RanksAnswer ranks) {
  ExecutionAnswer answer = std::move(ranks.execution);
  answer.job = std::move(ranks.cache.job);
  answer.graphs = std::move(ranks.cache.graphs);
  RETURN_IF_ERROR(SayWhyNoOrder(database, answer));
  return answer;
}

Result<std::vector<RanksAnswer>> AnalyzeRoles(Database& database, const RanksAnswer& whole) {
  std::vector<RanksAnswer> answers;
  ASSIGN_OR_RETURN(const std::vector<Role>* roles, LoadRoles(database, whole.job(), whole.damage));
  if (roles->size() < 2) return answers;
  std::vector<Role> all = *roles;
  Role rest;
  for (std::size_t i = 0; i < whole.job().participants().size(); ++i) {
    const auto index = static_cast<RankIndex>(i);
    if (std::none_of(roles->begin(), roles->end(), [&](const Role& one) {
          return std::binary_search(one.members.begin(), one.members.end(), index);
        }))
      rest.members.push_back(index);
  }
  if (!rest.members.empty()) all.push_back(std::move(rest));
  for (const Role& role : all) {
    ASSIGN_OR_RETURN(RanksAnswer answer, AnalyzeRanksPart(database, whole, role.members));
    for (RankClass& one : answer.classes) one.role = role.name;
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace tlparse
