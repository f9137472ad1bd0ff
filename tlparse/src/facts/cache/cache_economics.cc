// What caches were worth, layer by layer.
#include <algorithm>
#include <map>
#include <utility>

#include "facts/cache/cache.h"

namespace tlparse {

Result<std::vector<CacheEconomics>> SumEconomics(Database& database, const LookupIndex& lookups,
                                                 const std::vector<RankIndex>* only) {
  std::map<std::string, CacheEconomics> by_layer;
  std::map<std::string, std::map<std::int64_t, std::int64_t>> bypass_counts;  // by text id
  for (const JobLookup& lookup : lookups.lookups()) {
    if (only != nullptr && std::find(only->begin(), only->end(), lookup.participant) == only->end())
      continue;
    const std::string& layer =
        lookups.LayerName(lookups.slots()[static_cast<std::size_t>(lookup.lookup_slot)].layer_id);
    CacheEconomics& sums = by_layer[layer];
    sums.layer = layer;
    switch (lookup.state) {
      case CacheState::kHit:
        ++sums.hits;
        break;
      case CacheState::kMiss:
        ++sums.misses;
        break;
      case CacheState::kGuardMiss:
        ++sums.guard_misses;
        break;
      case CacheState::kRemoteError:
        ++sums.remote_errors;
        break;
      case CacheState::kBypass:
        ++sums.bypasses;
        ++bypass_counts[layer][lookup.bypass_id];
        break;
      case CacheState::kDisabled:
        ++sums.disabled;
        break;
    }
    const bool saved_twice = lookup.time_saved_ns != 0 && lookup.outer_saved_ns != 0;
    const bool taken_twice = lookup.time_taken_ns != 0 && lookup.outer_taken_ns != 0;
    if (saved_twice || taken_twice) {
      CacheEconomics::Within& within = sums.within[lookups.LayerName(lookup.outer_layer_id)];
      if (saved_twice) within.saved_ns += lookup.time_saved_ns;
      if (taken_twice) within.taken_ns += lookup.time_taken_ns;
    }
    if (lookup.time_saved_ns != 0)
      sums.time_saved_ns = sums.time_saved_ns.value_or(0) + lookup.time_saved_ns;
    if (lookup.time_taken_ns != 0)
      sums.time_taken_ns = sums.time_taken_ns.value_or(0) + lookup.time_taken_ns;
    sums.waited_ns += lookup.waited_ns;
    if (lookup.has_given_up_waiting) ++sums.waits_given_up;
  }
  std::vector<CacheEconomics> result;
  for (auto& [layer, sums] : by_layer) {
    for (const auto& [reason, count] : bypass_counts[layer]) {
      ASSIGN_OR_RETURN(std::string text, TextOf(database, reason));
      sums.bypass_reasons.push_back({text.empty() ? "no reason given" : std::move(text), count});
    }
    std::stable_sort(sums.bypass_reasons.begin(), sums.bypass_reasons.end(),
                     [](const auto& a, const auto& b) { return a.count > b.count; });
    result.push_back(std::move(sums));
  }
  return result;
}

}  // namespace tlparse
