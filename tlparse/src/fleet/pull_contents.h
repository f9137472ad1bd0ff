// Writes rows that runs share into a pulled database: contents, payloads, cache components and
// sets.
#pragma once

#include <vector>

#include "base/result.h"
#include "fleet/id_set.h"
#include "fleet/pull_facts.h"
#include "fleet/push_log.h"
#include "fleet/run_selection.h"

namespace tlparse {

class ContentPuller {
 public:
  explicit ContentPuller(PulledRun& run) : run_(run) {}

  // Rows below the contents of the loads. After the pools, before the facts.
  Result<void> PullContents(const std::vector<PushRow>& loads);
  // Sets that facts refer to, with their components. After the facts.
  Result<void> PullSets();
  // Payloads of the pulled records of a load. After its facts.
  Result<void> PullPayloads(const PushRow& load, const RankRanges& ranks);

 private:
  using ContentIds = std::unordered_map<Hash128, std::int64_t, Hash128Hasher>;
  Result<ContentIds> ReadContentIds();
  Result<void> PullContentTable(const FleetTable& table, const std::vector<PushRow>& loads,
                                const ContentIds& contents);
  Result<void> SetBase(const FleetTable& table, const std::string& where,
                       const ContentIds& contents);
  struct Set {
    std::int64_t id;
    Hash128 first_hash;
    std::vector<Hash128> components;
  };
  // Ordered by id. kRefused: the server lacks some.
  Result<std::vector<Set>> ReadSets(const std::vector<Hash128>& keys);
  Result<void> WriteSets(const std::vector<Set>& sets);
  Result<void> PullComponents(const std::vector<Hash128>& keys);
  Result<void> PullComponentHashes(const std::vector<Hash128>& keys);

  PulledRun& run_;
  std::string loads_;  // the loads, as a condition on facts
  ContentIds components_;
  IdSet written_payloads_;
};

}  // namespace tlparse
