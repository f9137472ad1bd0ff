// Writes rows that runs share into a pulled database: contents, payloads, cache components and
// sets.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "fleet/id_set.h"
#include "fleet/pull_facts.h"
#include "fleet/push_log.h"
#include "fleet/run_selection.h"

namespace tlparse {

class ContentPuller {
 public:
  // `loads`: of one run. They must outlive the puller.
  ContentPuller(PulledRun& run, std::span<const PushRow> loads) : run_(run), loads_(loads) {}

  // Rows below the contents of the loads. After the pools, before the facts.
  Result<void> PullContents();
  // Sets that facts refer to, with their components. After the facts.
  Result<void> PullSets();
  // Payloads of the pulled records, each once. After the facts.
  Result<void> PullPayloads(const RankRanges& ranks);

 private:
  Result<void> PullContentTable(const FleetTable& table, const ContentIds& contents);
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
  std::span<const PushRow> loads_;
  ContentIds components_;
  IdSet written_payloads_;
};

}  // namespace tlparse
