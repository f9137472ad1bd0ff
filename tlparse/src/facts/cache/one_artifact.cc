#include "facts/cache/one_artifact.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "facts/cache/cache.h"
#include "facts/cache/guard_contents.h"
#include "facts/cache/key_difference.h"

namespace tlparse {
namespace {

// As many ranks are tried as the one of the artifact: those whose like there are most.
constexpr std::size_t kMostTried = 64;

// What each rank needs, as numbers that are comparable between ranks.
template <class Need>
using Needs = std::map<RankIndex, std::set<Need>>;

template <class Need>
ArtifactOfRank BestOf(const Needs<Need>& needs) {
  std::map<std::set<Need>, std::vector<RankIndex>> alike;
  for (const auto& [rank, own] : needs) {
    if (!own.empty()) alike[own].push_back(rank);
  }
  std::vector<std::pair<const std::set<Need>*, const std::vector<RankIndex>*>> groups;
  for (const auto& [own, ranks] : alike) groups.emplace_back(&own, &ranks);
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return std::make_pair(-std::ssize(*a.second), a.second->front()) <
           std::make_pair(-std::ssize(*b.second), b.second->front());
  });
  ArtifactOfRank best;
  for (std::size_t i = 0; i < groups.size() && i < kMostTried; ++i) {
    ArtifactOfRank one{.of = groups[i].second->front()};
    for (const auto& [own, ranks] : groups) {
      const bool is_served =
          std::includes(groups[i].first->begin(), groups[i].first->end(), own->begin(), own->end());
      std::vector<RankIndex>& side = is_served ? one.served : one.others;
      side.insert(side.end(), ranks->begin(), ranks->end());
    }
    const auto better = [](const ArtifactOfRank& a, const ArtifactOfRank& b) {
      return std::make_pair(-std::ssize(a.served), a.of) <
             std::make_pair(-std::ssize(b.served), b.of);
    };
    if (best.of < 0 || better(one, best)) best = std::move(one);
  }
  std::sort(best.served.begin(), best.served.end());
  std::sort(best.others.begin(), best.others.end());
  return best;
}

bool IsOfJob(const Job& job, RankIndex rank) {
  return !job.participants()[static_cast<std::size_t>(rank)].is_of_other_job;
}

Result<void> JudgeKeys(Database& database, const CacheAnswer& answer, OneArtifact& one) {
  const LookupIndex& index = answer.lookups;
  Needs<std::int64_t> needs;
  const auto is_named = [&](const JobLookup& lookup) {
    const LookupSlot& slot = index.slots()[static_cast<std::size_t>(lookup.lookup_slot)];
    return !answer.precompiled.empty() && index.LayerName(slot.layer_id) == "aotautograd";
  };
  for (const JobLookup& lookup : index.lookups()) {
    if (!IsOfJob(answer.job, lookup.participant)) continue;
    if (lookup.key_id != 0 && is_named(lookup)) ++one.of_named_graphs;
    if (lookup.key_id != 0 && !is_named(lookup)) needs[lookup.participant].insert(lookup.key_id);
    if (lookup.state == CacheState::kBypass || lookup.state == CacheState::kDisabled)
      ++one.bypassed;
  }
  one.caches = BestOf(needs);
  if (one.caches.others.empty()) return {};
  const std::set<std::int64_t>& held = needs[one.caches.of];
  ASSIGN_OR_RETURN(KeyComparer comparer, KeyComparer::Make(database, answer.job, index));
  std::map<std::pair<CauseKind, std::string>, OtherKeys> found;
  const auto add = [&](CauseKind kind, const std::string& text, RankIndex rank) {
    OtherKeys& keys = found[{kind, text}];
    keys.kind = kind;
    keys.text = text;
    if (keys.ranks.empty() || keys.ranks.back() != rank) keys.ranks.push_back(rank);
    ++keys.lookups;
  };
  for (const LookupSlot& slot : index.slots()) {
    const auto of_artifact =
        std::find_if(slot.lookups.begin(), slot.lookups.end(), [&](std::int32_t i) {
          return index.lookups()[static_cast<std::size_t>(i)].participant == one.caches.of;
        });
    for (const std::int32_t i : slot.lookups) {
      const JobLookup& lookup = index.lookups()[static_cast<std::size_t>(i)];
      if (lookup.key_id == 0 || held.contains(lookup.key_id) || is_named(lookup) ||
          !IsOfJob(answer.job, lookup.participant))
        continue;
      if (of_artifact == slot.lookups.end()) {
        add(CauseKind::kMissingLookup, "the rank of the artifact has no such lookup",
            lookup.participant);
        continue;
      }
      const JobLookup& a = index.lookups()[static_cast<std::size_t>(*of_artifact)];
      ASSIGN_OR_RETURN(KeyDifference difference, comparer.Compare(a, lookup));
      const std::vector<Cause> causes = FindCauses(
          std::move(difference.differences), comparer.Context(a.participant, lookup.participant));
      if (causes.empty()) add(CauseKind::kUnlogged, {}, lookup.participant);
      for (const Cause& cause : causes) add(cause.kind, cause.text, lookup.participant);
    }
  }
  for (auto& [key, keys] : found) {
    std::sort(keys.ranks.begin(), keys.ranks.end());
    keys.ranks.erase(std::unique(keys.ranks.begin(), keys.ranks.end()), keys.ranks.end());
    one.keys.push_back(std::move(keys));
  }
  return {};
}

// A function by name, file and line.
using FunctionKey = std::tuple<std::int32_t, std::int32_t, std::int64_t>;
using CodeNeed = std::pair<FunctionKey, std::int64_t>;  // with the class of its guards

Result<void> JudgeGuards(Database& database, const Job& job, OneArtifact& one) {
  ASSIGN_OR_RETURN(const GuardContents contents, LoadGuardContents(database, job));
  GuardSets sets(database);
  Needs<CodeNeed> needs;
  std::map<std::pair<RankIndex, CodeNeed>, std::int64_t> content_of;
  for (const JobCompile& compile : job.compiles()) {
    const auto own = contents.find(compile.id);
    if (own == contents.end() || compile.function_id < 0 || !IsOfJob(job, compile.participant))
      continue;
    for (const std::int64_t content : own->second) {
      ASSIGN_OR_RETURN(const std::int64_t number, sets.ClassOf(content));
      const CodeNeed need{{compile.function_id, compile.file_id, compile.line}, number};
      needs[compile.participant].insert(need);
      content_of.emplace(std::pair(compile.participant, need), content);
    }
  }
  one.code = BestOf(needs);
  const std::set<CodeNeed>& held = needs[one.code.of];
  for (const RankIndex rank : one.code.others) {
    for (const CodeNeed& need : needs[rank]) {
      if (held.contains(need)) continue;
      const auto& [function_id, file_id, line] = need.first;
      OtherGuards other{.function = job.string(function_id),
                        .file = file_id < 0 ? std::string() : job.string(file_id),
                        .line = line,
                        .ranks = {rank},
                        .is_absent = true};
      for (const CodeNeed& candidate : held) {
        if (candidate.first != need.first) continue;
        ASSIGN_OR_RETURN(
            std::vector<GuardChange> changes,
            sets.Changes(content_of[{one.code.of, candidate}], content_of[{rank, need}]));
        if (other.is_absent || changes.size() < other.changes.size())
          other.changes = std::move(changes);
        other.is_absent = false;
      }
      const auto alike =
          std::find_if(one.guards.begin(), one.guards.end(), [&](const OtherGuards& known) {
            return known.function == other.function && known.file == other.file &&
                   known.line == other.line && known.is_absent == other.is_absent &&
                   known.changes == other.changes;
          });
      if (alike == one.guards.end()) {
        one.guards.push_back(std::move(other));
      } else if (alike->ranks.back() != rank) {
        alike->ranks.push_back(rank);
      }
    }
  }
  return {};
}

}  // namespace

Result<OneArtifact> JudgeOneArtifact(Database& database, const CacheAnswer& answer) {
  OneArtifact one;
  if (!answer.job.HasSeveral()) return one;
  RETURN_IF_ERROR(JudgeKeys(database, answer, one));
  RETURN_IF_ERROR(JudgeGuards(database, answer.job, one));
  return one;
}

}  // namespace tlparse
