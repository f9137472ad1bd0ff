// The closest earlier key of a lookup that did not hit: what changed since.
#include "queries/facts/cache/cache_closest.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "facts/cache/cache.h"
#include "facts/cache/key_difference.h"

namespace tlparse {
namespace {

// A key that was looked up earlier, in this process or in an earlier run of the database.
struct EarlierKey {
  KeySet set;
  std::int64_t key_id = 0;
  std::int64_t layer_id = 0;
  std::string direction;
  std::string function;
  std::string label;
  std::string run;  // empty: this run
  std::string torch_version, python_version;
};

std::string TitleOf(const EarlierKey& key) {
  std::string title = key.label;
  if (!key.function.empty()) title += ' ' + key.function;
  // A function may have the name of a direction.
  if (!key.direction.empty()) title += fmt::format(" ({} graph)", key.direction);
  return title;
}

// Lookups of earlier runs, at most the latest few thousand: a key from long ago explains nothing.
Result<std::vector<EarlierKey>> KeysOfEarlierRuns(Database& database, std::int64_t run_id) {
  constexpr std::int64_t kMostKeys = 4000;
  std::vector<EarlierKey> keys;
  FOR_EACH_ROW(const KeyOfEarlierRun& row,
               Query<KeyOfEarlierRun>(database, {.run_id = run_id, .most = kMostKeys})) {
    keys.push_back({{row.component_set_id, row.device_index},
                    row.key_id.value_or(0),
                    row.layer_id,
                    std::string(row.direction),
                    std::string(row.function),
                    std::string(row.label),
                    std::string(row.run_name),
                    std::string(row.torch_version),
                    std::string(row.python_version)});
  }
  std::reverse(keys.begin(), keys.end());
  return keys;
}

class ClosestFinder {
 public:
  ClosestFinder(Database& database, const CacheAnswer& answer, ComponentIndex index,
                std::vector<EarlierKey> earlier)
      : database_(database),
        answer_(answer),
        index_(std::move(index)),
        earlier_(std::move(earlier)) {}

  Result<std::vector<ClosestKey>> Run(RankIndex participant);

 private:
  Result<const std::vector<KeyComponent>*> Components(std::int64_t set_id);
  Result<std::optional<ClosestKey>> Find(const JobLookup& lookup, const EarlierKey& own);

  Result<ClosestKey> ExplainGuardMiss(const JobLookup& lookup);

  Database& database_;
  const CacheAnswer& answer_;
  ComponentIndex index_;
  std::vector<EarlierKey> earlier_;
  std::map<std::int64_t, std::vector<KeyComponent>> expanded_;
};

Result<const std::vector<KeyComponent>*> ClosestFinder::Components(std::int64_t set_id) {
  const auto known = expanded_.find(set_id);
  if (known != expanded_.end()) return &known->second;
  ASSIGN_OR_RETURN(std::vector<KeyComponent> components, index_.Expand(set_id));
  return &(expanded_[set_id] = std::move(components));
}

Result<std::optional<ClosestKey>> ClosestFinder::Find(const JobLookup& lookup,
                                                      const EarlierKey& own) {
  constexpr std::size_t kMostCandidates = 300;
  // What the lookup could have hit: earlier keys of its function and direction. Those of other
  // functions are asked only in earlier runs, where the function may have had another name; in its
  // own run a function's first key has none before it.
  std::vector<const EarlierKey*> candidates;  // the latest first
  for (const bool same_function : {true, false}) {
    for (auto key = earlier_.rbegin();
         key != earlier_.rend() && candidates.size() < kMostCandidates; ++key) {
      if (key->layer_id != own.layer_id || key->direction != own.direction ||
          (key->function == own.function) != same_function)
        continue;
      if (same_function || !key->run.empty()) candidates.push_back(&*key);
    }
    if (!candidates.empty()) break;
  }
  if (candidates.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(const std::vector<KeyComponent>* components, Components(lookup.set.set_id));
  const EarlierKey* closest = nullptr;
  std::size_t fewest = 0;
  for (const EarlierKey* candidate : candidates) {
    std::size_t count = 0;
    if (candidate->key_id != own.key_id) {
      ASSIGN_OR_RETURN(const std::vector<KeyComponent>* others, Components(candidate->set.set_id));
      // Keys of one set differ by their device index, which is at least one difference.
      count = std::max<std::size_t>(CountDifferences(*others, *components), 1);
    }
    if (closest == nullptr || count < fewest) closest = candidate, fewest = count;
    if (fewest == 0) break;
  }
  ClosestKey result;
  result.earlier_title = TitleOf(*closest);
  result.earlier_run = closest->run;
  if (closest->key_id != own.key_id) {
    ASSIGN_OR_RETURN(std::vector<ComponentDifference> differences,
                     CompareSets(index_, closest->set, lookup.set));
    result.difference_count = differences.size();
    result.causes = FindCauses(
        std::move(differences),
        {closest->torch_version, own.torch_version, closest->python_version, own.python_version});
  }
  return result;
}

// Entries with this very key were there: their guards are the cause, not another key.
Result<ClosestKey> ClosestFinder::ExplainGuardMiss(const JobLookup& lookup) {
  ClosestKey result;
  for (auto key = earlier_.rbegin(); key != earlier_.rend(); ++key) {
    if (key->key_id != lookup.key_id) continue;
    result.earlier_title = TitleOf(*key);
    result.earlier_run = key->run;
    break;
  }
  Cause& cause = result.causes.emplace_back();
  cause.kind = CauseKind::kGuardMiss;
  ASSIGN_OR_RETURN(cause.text, TextOf(database_, lookup.guard_id));
  return result;
}

Result<std::vector<ClosestKey>> ClosestFinder::Run(RankIndex participant) {
  const Job& job = answer_.job;
  const JobParticipant& who = job.participants()[static_cast<std::size_t>(participant)];
  std::vector<ClosestKey> result;
  const std::vector<JobLookup>& lookups = answer_.lookups.lookups();
  for (std::size_t i = 0; i < lookups.size(); ++i) {  // in log order
    const JobLookup& lookup = lookups[i];
    if (lookup.participant != participant || lookup.set.set_id == 0 || lookup.key_id == 0) continue;
    const JobCompile& compile = job.compiles()[static_cast<std::size_t>(lookup.compile)];
    const LookupSlot& slot = answer_.lookups.slots()[static_cast<std::size_t>(lookup.lookup_slot)];
    const EarlierKey own{lookup.set,
                         lookup.key_id,
                         slot.layer_id,
                         std::string(Name(slot.direction)),
                         compile.function_id < 0 ? std::string() : job.string(compile.function_id),
                         job.string(compile.label_id),
                         {},
                         who.torch_version,
                         who.python_version};
    if (lookup.state == CacheState::kGuardMiss) {
      ASSIGN_OR_RETURN(ClosestKey guards, ExplainGuardMiss(lookup));
      guards.lookup = static_cast<std::int32_t>(i);
      result.push_back(std::move(guards));
    } else if (lookup.state == CacheState::kMiss) {
      ASSIGN_OR_RETURN(std::optional<ClosestKey> closest, Find(lookup, own));
      if (closest) {
        closest->lookup = static_cast<std::int32_t>(i);
        result.push_back(std::move(*closest));
      }
    }
    earlier_.push_back(own);
  }
  return result;
}

}  // namespace

Result<std::vector<ClosestKey>> FindClosestKeys(Database& database, const CacheAnswer& answer,
                                                RankIndex participant) {
  ASSIGN_OR_RETURN(ComponentIndex index, ComponentIndex::Load(database));
  ASSIGN_OR_RETURN(std::vector<EarlierKey> earlier,
                   KeysOfEarlierRuns(database, answer.job.run_id()));
  return ClosestFinder(database, answer, std::move(index), std::move(earlier)).Run(participant);
}

}  // namespace tlparse
