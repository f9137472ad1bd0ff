// One cache key with two generated codes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/plural.h"
#include "findings/context.h"

namespace tlparse {
namespace {

// Whether a rank of these took an entry from a cache under such a key.
bool HasHit(const FindingContext& context, const std::vector<const SameKeyCode*>& codes) {
  std::set<std::string> keys;
  for (const SameKeyCode* one : codes) keys.insert(one->key);
  const auto& answers = context.ranks.cache.lookup_answers;
  return std::any_of(answers.begin(), answers.end(), [&](const CacheLookupAnswer& answer) {
    return std::any_of(answer.classes.begin(), answer.classes.end(), [&](const CacheClass& one) {
      return one.state == CacheState::kHit && keys.contains(one.key);
    });
  });
}

// That the codes of these ranks differ is reported by the keys as well.
void TakeInCodes(FindingContext& context, Finding& finding) {
  std::erase_if(context.findings, [&](Finding& other) {
    if (other.kind != FindingKind::kCodeDivergence || other.ranks != finding.ranks ||
        other.severity == FindingSeverity::kNote)
      return false;
    for (Finding& one : other.evidence) finding.evidence.push_back(std::move(one));
    other.evidence.clear();
    finding.evidence.insert(finding.evidence.begin(), std::move(other));
    return true;
  });
}

}  // namespace

void AddSameKeys(FindingContext& context) {
  std::map<std::vector<RankIndex>, std::vector<const SameKeyCode*>> groups;
  for (const SameKeyCode& one : context.ranks.cache.same_key_codes) {
    if (!context.AreDamaged(one.ranks) && !context.AreDamaged(one.other_ranks))
      groups[one.other_ranks].push_back(&one);
  }
  for (const auto& [ranks, codes] : groups) {
    Finding finding;
    finding.kind = FindingKind::kOneKeyTwoCodes;
    context.SetRanks(finding, ranks);
    std::vector<std::int64_t> ids;
    std::set<std::string> targets, labels;
    for (const SameKeyCode* one : codes) {
      ids.push_back(one->record_id);
      ids.push_back(one->other_record_id);
      targets.insert(one->target);
      if (const JobCompile* compile = context.job.FindCompile(one->compile_id))
        labels.insert(context.job.string(compile->label_id));
    }
    finding.compiles.assign(labels.begin(), labels.end());
    // For another processor: where no rank took an entry, each ran the code for its own.
    const std::string target = targets.size() == 1 ? *targets.begin() : std::string();
    finding.severity = target.empty() || HasHit(context, codes) ? FindingSeverity::kError
                                                                : FindingSeverity::kWarning;
    finding.title =
        fmt::format("{} generated other code than {} under {} equal cache key{}{}{}",
                    context.Who(ranks), context.WhoInside(codes.front()->ranks), codes.size(),
                    PluralS(codes.size()), target.empty() ? "" : ": ", target);
    finding.cause = "the cache key does not tell apart what the code depends on";
    finding.detail =
        "With a shared cache all of them run the code that was stored first. 'tlparse cache' shows "
        "the difference.";
    if (!target.empty())
      finding.suggestion =
          "give ranks on other processors a cache directory of their own "
          "(TORCHINDUCTOR_CACHE_DIR), or set ATEN_CPU_CAPABILITY and OMP_NUM_THREADS alike on all";
    finding.query = fmt::format("SELECT * FROM output_code WHERE record_id IN {}", IdList(ids));
    TakeInCodes(context, finding);
    context.findings.push_back(std::move(finding));
  }
}

}  // namespace tlparse
