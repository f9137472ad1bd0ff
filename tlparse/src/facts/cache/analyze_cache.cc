// The answer of `tlparse cache`, of a job or a part of it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/plural.h"
#include "facts/cache/cache.h"
#include "facts/job/read_transaction.h"
#include "facts/job/written_since.h"
#include "queries/facts/cache/cache_lookups.h"

namespace tlparse {
namespace {

// `answer` has the job, its graphs, damage and lookups.
Result<void> FillCache(Database& database, bool with_code_check, CacheAnswer& answer) {
  RETURN_IF_ERROR(FindCacheClasses(database, answer));
  ASSIGN_OR_RETURN(answer.economics, SumEconomics(database, answer.lookups));
  ASSIGN_OR_RETURN(answer.precompiled, FindPrecompiledCode(database, answer.job));
  if (with_code_check) {
    ASSIGN_OR_RETURN(answer.same_key_codes, FindSameKeyCodes(database, answer.job));
  }
  const bool has_aotautograd =
      std::any_of(answer.economics.begin(), answer.economics.end(),
                  [](const CacheEconomics& one) { return one.layer == "aotautograd"; });
  if (!answer.economics.empty() && !has_aotautograd) {
    ASSIGN_OR_RETURN(answer.not_written, WhyNotWritten(database, answer.job.run_id(),
                                                       VersionedInput::kAotAutogradLookups));
  }
  return {};
}

Result<std::string> WhatIsNotCounted(Database& database, const CacheAnswer& answer) {
  ASSIGN_OR_RETURN(const FirstRow<LookupsOfLaunch> row,
                   First(Query<LookupsOfLaunch>(
                       database, {.run_id = answer.job.run_id(), .launch = answer.job.launch()})));
  const auto counted = static_cast<std::int64_t>(answer.lookups.lookups().size());
  if (!row || row->all_count <= counted) return std::string();
  const std::int64_t children = std::min(row->child_count, row->all_count - counted);
  const std::int64_t others = row->all_count - counted - children;
  std::string text;
  if (children > 0)
    text = fmt::format("{} of processes that ranks started", Count(children, "lookup"));
  if (others > 0)
    text += fmt::format("{}{} of no compile, or in a record that is cut off or damaged",
                        text.empty() ? "" : ", ",
                        text.empty() ? Count(others, "lookup") : fmt::format("{}", others));
  return text;
}

}  // namespace

Result<CacheAnswer> AnalyzeCache(Database& database, const CacheOptions& options) {
  ASSIGN_OR_RETURN(const ReadTransaction transaction, ReadTransaction::Begin(database));
  ASSIGN_OR_RETURN(Job job, Job::Load(database, options.run, options.launch));
  ASSIGN_OR_RETURN(CacheAnswer answer, AnalyzeCacheOf(database, std::move(job), options));
  ASSIGN_OR_RETURN(answer.not_counted, WhatIsNotCounted(database, answer));
  return answer;
}

Result<CacheAnswer> AnalyzeCachePart(Database& database, const CacheAnswer& whole,
                                     const std::vector<RankIndex>& members) {
  CacheAnswer answer;
  answer.job = whole.job.Part(members);
  answer.graphs = whole.graphs.Part(whole.job, answer.job);
  answer.damage = whole.damage.Part(members);
  answer.lookups = whole.lookups.Part(whole.job, answer.job);
  RETURN_IF_ERROR(FillCache(database, !whole.same_key_codes.empty(), answer));
  return answer;
}

Result<CacheAnswer> AnalyzeCacheOf(Database& database, Job job, const CacheOptions& options) {
  CacheAnswer answer;
  answer.job = std::move(job);
  ASSIGN_OR_RETURN(answer.graphs, JobGraphs::Load(database, answer.job));
  ASSIGN_OR_RETURN(answer.damage, FindLogDamage(database, answer.job));
  ASSIGN_OR_RETURN(answer.lookups, LookupIndex::Load(database, answer.job, answer.graphs));
  RETURN_IF_ERROR(FillCache(database, options.with_code_check, answer));
  RETURN_IF_ERROR(AddClosestKeys(database, options, answer));
  RETURN_IF_ERROR(AddOneArtifact(database, options, answer));
  return answer;
}

Result<void> AddOneArtifact(Database& database, const CacheOptions& options, CacheAnswer& answer) {
  if (!options.with_one_artifact) return {};
  ASSIGN_OR_RETURN(answer.one_artifact, JudgeOneArtifact(database, answer));
  return {};
}

Result<void> AddClosestKeys(Database& database, const CacheOptions& options, CacheAnswer& answer) {
  if (!options.with_closest_keys) return {};
  RankIndex participant = answer.job.HasSeveral() ? -1 : 0;
  if (options.rank) {
    for (std::size_t i = 0; i < answer.job.participants().size(); ++i) {
      if (answer.job.participants()[i].name == *options.rank)
        participant = static_cast<RankIndex>(i);
    }
    if (participant < 0 ||
        answer.job.participants()[static_cast<std::size_t>(participant)].name != *options.rank) {
      return Fail(ErrorCode::kNotFound,
                  fmt::format("run '{}' has no rank '{}'", answer.job.run_name(), *options.rank));
    }
  }
  if (participant >= 0) {
    ASSIGN_OR_RETURN(answer.closest_keys, FindClosestKeys(database, answer, participant));
  }
  return {};
}

}  // namespace tlparse
