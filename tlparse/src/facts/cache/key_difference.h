// The difference between two cache keys: that of their components, or of other logged inputs where
// the log has no components.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "facts/cache/cache_lookups.h"
#include "facts/cache/cause.h"
#include "facts/cache/component_index.h"
#include "facts/job/job.h"

namespace tlparse {

struct KeyDifference {
  std::vector<ComponentDifference> differences;
  // What was compared instead of missing components, for the answer. Empty: the components were
  // compared.
  std::string fallback;
  bool has_evidence = true;  // false: nothing to compare was in the log
};

// The differing components of two stored sets, in the order of set a, then what only b has.
Result<std::vector<ComponentDifference>> CompareSets(ComponentIndex& index, const KeySet& a_set,
                                                     const KeySet& b_set);
// The number of differing components of two expanded sets; device indexes do not count.
std::size_t CountDifferences(const std::vector<KeyComponent>& a,
                             const std::vector<KeyComponent>& b);

// Compares lookups of one job. Caches data that several comparisons need.
class KeyComparer {
 public:
  static Result<KeyComparer> Make(Database& database, const Job& job, const LookupIndex& lookups);

  // Equal for lookups whose keys are equal up to expected differences, as far as the log shows.
  Result<Hash128> Evidence(const JobLookup& lookup);
  Result<KeyDifference> Compare(const JobLookup& a, const JobLookup& b);
  CauseContext Context(RankIndex a, RankIndex b) const;
  ComponentIndex& index() { return index_; }

 private:
  KeyComparer(Database& database, const Job& job, const LookupIndex& lookups, ComponentIndex index)
      : database_(&database), job_(&job), lookups_(&lookups), index_(std::move(index)) {}
  // Another lookup of the same compile whose components are known; nullptr: none.
  const JobLookup* Sibling(const JobLookup& lookup) const;
  // Payload id of the compile's torch._functorch.config; 0: none.
  Result<std::int64_t> FunctorchConfig(const JobLookup& lookup);

  Database* database_;
  const Job* job_;
  const LookupIndex* lookups_;
  ComponentIndex index_;
  std::unordered_map<std::int32_t, std::int32_t> sibling_of_compile_;
  // Payload id by compile id; empty until one is asked for.
  std::optional<std::unordered_map<std::int64_t, std::int64_t>> config_of_compile_;
};

}  // namespace tlparse
