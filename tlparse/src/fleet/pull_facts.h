// Writes the facts and pools of a load into a pulled database.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "fleet/clickhouse_client.h"
#include "fleet/fleet_schema.h"
#include "fleet/pull_ids.h"
#include "fleet/push_log.h"
#include "fleet/row_stream.h"
#include "fleet/run_selection.h"
#include "store/database.h"

namespace tlparse {

// The rows of one load in a fact table, as a condition.
std::string OfLoad(const PushRow& load);
// The ranks, as a condition on process_rank; empty: all.
std::string OfRanks(const RankRanges& ranks);

// Shared by the parts of a pull.
struct PulledRun {
  Database& database;
  ClickHouseClient& client;
  const FleetSchema& schema;
  PulledTexts& texts;
  PullLimit& limit;
  bool has_several_loads = false;
  std::int64_t run_id = 0;  // the run's row
  std::uint64_t rows = 0;
  IdsByHash contents{}, keys{}, payloads{}, sets{};
  // Of contents with rows that have ids: the id before the first of them.
  std::map<std::string, std::unordered_map<std::int64_t, std::int64_t>> id_base{};
};

class FactPuller {
 public:
  FactPuller(PulledRun& run, const RankRanges& ranks,
             const std::function<void(std::uint64_t, std::string_view)>& on_progress)
      : run_(run), ranks_(ranks), on_progress_(on_progress) {}

  // Where the ids of each load begin: loads are numbered one after the other.
  Result<void> SetShifts(const std::vector<PushRow>& loads, std::vector<LoadIds>& ids);
  // Strings, contents, keys and stacks: before contents and facts.
  Result<void> PullPools(const PushRow& load, std::size_t index, LoadIds& ids);
  Result<void> PullFacts(const PushRow& load, std::size_t index, LoadIds& ids);

 private:
  Result<void> PullTable(const FleetTable& table, const PushRow& load, std::size_t index,
                         LoadIds& ids);

  PulledRun& run_;
  const RankRanges& ranks_;
  const std::function<void(std::uint64_t, std::string_view)>& on_progress_;
};

}  // namespace tlparse
