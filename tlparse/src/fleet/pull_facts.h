// Writes the facts and pools of the loads of a run into a pulled database.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
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

// The rows of loads of one run in a fact table, as a condition.
std::string OfLoads(std::span<const PushRow> loads);
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
  // `loads`: of one run, in the order in which their rows are written. They must outlive the puller.
  FactPuller(PulledRun& run, std::span<const PushRow> loads, const RankRanges& ranks,
             const std::function<void(std::uint64_t, std::string_view)>& on_progress)
      : run_(run), loads_(loads), ids_(loads.size()), ranks_(ranks), on_progress_(on_progress) {}

  // Where the ids of each load begin: loads are numbered one after the other.
  Result<void> SetShifts();
  // Strings, contents, keys and stacks: before contents and facts.
  Result<void> PullPools();
  Result<void> PullFacts();

 private:
  // The rows of the loads [begin, end): one query, however many hosts pushed the run.
  Result<void> PullTable(const FleetTable& table, std::size_t begin, std::size_t end);
  Result<void> PullTables(std::span<const FleetTable* const> tables);
  // Log files that hold ranks that are wanted, by load.
  Result<std::map<std::uint64_t, std::set<std::int64_t>>> ReadLogs(std::span<const PushRow> loads);

  PulledRun& run_;
  std::span<const PushRow> loads_;
  std::vector<LoadIds> ids_;
  const RankRanges& ranks_;
  const std::function<void(std::uint64_t, std::string_view)>& on_progress_;
};

}  // namespace tlparse
