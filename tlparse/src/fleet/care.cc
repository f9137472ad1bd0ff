#include "fleet/care.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "fleet/fleet_schema.h"
#include "fleet/push_log.h"
#include "fleet/server_tables.h"
#include "fleet/sql_quote.h"

namespace tlparse {
namespace {

// When a push began that chose this id (see push.cc).
std::int64_t LoadBeganS(std::uint64_t load) { return static_cast<std::int64_t>(load >> 36) * 16; }

// Tables whose rows have a load, `push` last.
Result<std::vector<std::string>> FactTables() {
  ASSIGN_OR_RETURN(const FleetSchema schema, MakeFleetSchema());
  std::vector<std::string> tables{"run_component", "finding"};
  for (const FleetTable& table : schema.tables)
    if (table.kind != FleetTable::Kind::kContent) tables.push_back(table.name);
  return tables;
}

Result<std::vector<std::uint64_t>> ReadNumbers(ClickHouseClient& client, const std::string& sql) {
  ASSIGN_OR_RETURN(const std::string answer, client.Query(sql + " FORMAT TabSeparated"));
  ASSIGN_OR_RETURN(const auto rows, ParseTabSeparated(answer, 1));
  std::vector<std::uint64_t> numbers;
  for (const auto& row : rows) numbers.push_back(std::strtoull(row[0].c_str(), nullptr, 10));
  return numbers;
}

// Deletes the facts of the loads, then their rows of `push`.
Result<std::size_t> DeleteLoads(ClickHouseClient& client, const std::vector<std::uint64_t>& loads) {
  ASSIGN_OR_RETURN(std::vector<std::string> tables, FactTables());
  tables.emplace_back("push");
  std::size_t count = 0;
  constexpr std::size_t kAtOnce = 5000;
  for (const std::string& table : tables) {
    bool had_rows = false;
    for (std::size_t begin = 0; begin < loads.size(); begin += kAtOnce) {
      const std::size_t size = std::min(kAtOnce, loads.size() - begin);
      const std::string condition =
          fmt::format("load_id IN {}", QuoteList(std::span(loads).subspan(begin, size)));
      ASSIGN_OR_RETURN(
          const std::string rows,
          client.Query(fmt::format("SELECT count() FROM {} WHERE {} FORMAT TabSeparated",
                                   QuoteName(table), condition)));
      if (rows == "0\n") continue;
      had_rows = true;
      RETURN_IF_ERROR(
          client.Query(fmt::format("ALTER TABLE {} DELETE WHERE {}", QuoteName(table), condition)));
    }
    count += had_rows ? 1 : 0;
  }
  return count;
}

Result<std::vector<std::uint64_t>> UnfinishedLoads(ClickHouseClient& client,
                                                   std::int64_t before_s) {
  ASSIGN_OR_RETURN(const std::vector<std::string> tables, FactTables());
  std::set<std::uint64_t> loads;
  for (const std::string& table : tables) {
    ASSIGN_OR_RETURN(
        const std::vector<std::uint64_t> found,
        ReadNumbers(client, fmt::format("SELECT DISTINCT load_id "
                                        "FROM {} WHERE load_id NOT IN (SELECT load_id FROM push)",
                                        QuoteName(table))));
    for (const std::uint64_t load : found)
      if (LoadBeganS(load) < before_s) loads.insert(load);
  }
  return std::vector<std::uint64_t>(loads.begin(), loads.end());
}

Result<std::vector<std::uint64_t>> DeadLoads(ClickHouseClient& client, std::int64_t before_s) {
  ASSIGN_OR_RETURN(
      const std::vector<std::uint64_t> found,
      ReadNumbers(client, fmt::format("SELECT DISTINCT load_id FROM push WHERE load_id NOT IN ({})",
                                      LiveLoadsSql("push", ""))));
  std::vector<std::uint64_t> dead;
  for (const std::uint64_t load : found)
    if (LoadBeganS(load) < before_s) dead.push_back(load);
  return dead;
}

// Whole months go with their partitions, the days of the last one are deleted.
Result<void> DeleteDays(ClickHouseClient& client, std::int64_t before_day) {
  ASSIGN_OR_RETURN(std::vector<std::string> tables, FactTables());
  tables.emplace_back("push");
  const std::string month = DayText(before_day).substr(0, 4) + DayText(before_day).substr(5, 2);
  for (const std::string& table : tables) {
    ASSIGN_OR_RETURN(
        const std::vector<std::uint64_t> partitions,
        ReadNumbers(client, fmt::format("SELECT DISTINCT partition FROM system.parts "
                                        "WHERE database = {} AND table = {} AND active",
                                        QuoteText(client.database()), QuoteText(table))));
    for (const std::uint64_t partition : partitions) {
      if (partition == 0 || partition >= std::strtoull(month.c_str(), nullptr, 10)) continue;
      RETURN_IF_ERROR(client.Query(
          fmt::format("ALTER TABLE {} DROP PARTITION {}", QuoteName(table), partition)));
    }
    const std::string condition = "day < " + QuoteDay(before_day);
    ASSIGN_OR_RETURN(const std::string rows,
                     client.Query(fmt::format("SELECT count() FROM {} WHERE {} FORMAT TabSeparated",
                                              QuoteName(table), condition)));
    if (rows != "0\n")
      RETURN_IF_ERROR(
          client.Query(fmt::format("ALTER TABLE {} DELETE WHERE {}", QuoteName(table), condition)));
  }
  return {};
}

}  // namespace

Result<RemovedLoads> DeleteRun(ClickHouseClient& client, const std::string& run_id) {
  if (!IsUuid(run_id))
    return Fail(ErrorCode::kUsage, fmt::format("'{}' is no id of a run", run_id));
  ASSIGN_OR_RETURN(const std::vector<PushRow> rows,
                   ReadPushRows(client, "run_id = " + QuoteUuid(run_id)));
  if (rows.empty()) return Fail(ErrorCode::kNotFound, fmt::format("there is no run {}", run_id));
  RemovedLoads removed;
  std::uint64_t version = 0;
  std::set<std::uint64_t> loads;
  for (const PushRow& row : rows) {
    version = std::max(version, row.version);
    loads.insert(row.load_id);
  }
  // All are withdrawn, so that none that was replaced comes back meanwhile.
  std::set<std::uint64_t> hidden;
  std::vector<PushRow> withdrawn;
  for (const PushRow& row : rows) {
    if (!hidden.insert(row.load_id).second) continue;
    withdrawn.push_back(row);
    withdrawn.back().state = PushRow::kWithdrawn;
    withdrawn.back().version = version + 1;
  }
  RETURN_IF_ERROR(WritePushRows(client, withdrawn));
  removed.loads.assign(loads.begin(), loads.end());
  const Result<std::size_t> deleted = DeleteLoads(client, removed.loads);
  if (!deleted)
    return Fail(deleted.error().code,
                fmt::format("the run is no longer visible, but its rows are still there "
                            "('tlparse fleet gc' removes them): {}",
                            deleted.error().message));
  removed.table_count = *deleted;
  return removed;
}

Result<GcSummary> CollectGarbage(ClickHouseClient& client, const GcOptions& options) {
  GcSummary summary;
  ASSIGN_OR_RETURN(const std::int64_t now_s, ServerNowS(client));
  const std::int64_t before_s = now_s - options.min_age_s;
  ASSIGN_OR_RETURN(summary.unfinished.loads, UnfinishedLoads(client, before_s));
  ASSIGN_OR_RETURN(summary.dead.loads, DeadLoads(client, before_s));
  if (options.older_than_days > 0) summary.before_day = now_s / 86'400 - options.older_than_days;
  if (options.dry_run) return summary;
  ASSIGN_OR_RETURN(summary.unfinished.table_count, DeleteLoads(client, summary.unfinished.loads));
  ASSIGN_OR_RETURN(summary.dead.table_count, DeleteLoads(client, summary.dead.loads));
  if (summary.before_day >= 0) RETURN_IF_ERROR(DeleteDays(client, summary.before_day));
  return summary;
}

}  // namespace tlparse
