#include "fleet/pull_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "fleet/sql_quote.h"
#include "fleet/table_writer.h"

namespace tlparse {
namespace {

using Source = FleetColumn::Source;

bool HasColumn(const FleetTable& table, std::string_view name) {
  return std::any_of(table.columns.begin(), table.columns.end(),
                     [&](const FleetColumn& column) { return column.name == name; });
}

}  // namespace

std::string OfLoad(const PushRow& load) {
  return fmt::format("job = {} AND day = {} AND run_id = {} AND load_id = {}", QuoteText(load.job),
                     QuoteDay(load.day), QuoteUuid(ToText(load.run_id)), load.load_id);
}

std::string OfRanks(const RankRanges& ranks) {
  std::string condition;
  for (const auto& [first, last] : ranks)
    condition += fmt::format("{}(process_rank >= {} AND process_rank <= {})",
                             condition.empty() ? "" : " OR ", first, last);
  return condition.empty() ? condition : "(" + condition + ")";
}

Result<void> FactPuller::PullTable(const FleetTable& table, const PushRow& load, std::size_t index,
                                   LoadIds& ids) {
  // What the push wrote is counted in its row: nothing was written to other tables.
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < std::min(load.tables.size(), load.row_counts.size()); ++i)
    if (load.tables[i] == table.name) expected = load.row_counts[i];
  if (expected == 0) return {};
  if (on_progress_) on_progress_(run_.rows, table.name);
  TableWriter writer(run_, table, index, ids, load.host);
  RETURN_IF_ERROR(writer.Prepare());
  std::set<std::int64_t> logs;
  const bool is_filtered = !ranks_.empty();
  std::string where = OfLoad(load);
  if (is_filtered && HasColumn(table, "process_rank")) where += " AND " + OfRanks(ranks_);
  if (is_filtered && (table.name == "log_file" || HasColumn(table, "log_file_id"))) {
    ASSIGN_OR_RETURN(
        [[maybe_unused]] const std::uint64_t count,
        StreamRows(run_.client,
                   fmt::format("SELECT DISTINCT log_file_id FROM process WHERE {} AND {}",
                               OfLoad(load), OfRanks(ranks_)),
                   run_.limit, [&](RowBinaryReader& reader) -> Result<void> {
                     const std::int64_t id = reader.Int64();
                     if (!reader.is_short()) logs.insert(id);
                     return {};
                   }));
    if (table.name == "log_file") writer.SetLogs(&logs);
  }
  for (const FleetColumn& column : table.columns) {
    if (column.source != Source::kHash ||
        table.sqlite_columns[static_cast<std::size_t>(column.sqlite_column)].reference !=
            ColumnReference::kOwned)
      continue;
    ASSIGN_OR_RETURN(Statement read, run_.database.Prepare("SELECT id, hash FROM content_row"));
    while (true) {
      ASSIGN_OR_RETURN(const bool has_row, read.Step());
      if (!has_row) break;
      if (const std::optional<Hash128> hash = FromHex(read.Text(1)))
        writer.AddContent(*hash, read.Int(0));
    }
    break;
  }
  std::string select = "SELECT ";
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    select += (i == 0 ? "" : ", ") + QuoteName(table.columns[i].name);
  select += fmt::format(" FROM {} WHERE {}", QuoteName(table.name), where);
  if (!table.order_by.empty()) {
    select += " ORDER BY ";
    for (std::size_t i = 0; i < table.order_by.size(); ++i)
      select += (i == 0 ? "" : ", ") + QuoteName(table.order_by[i]);
  }
  ASSIGN_OR_RETURN(const std::uint64_t rows,
                   StreamRows(run_.client, select, run_.limit,
                              [&](RowBinaryReader& reader) { return writer.Read(reader); }));
  if (rows != expected && !(is_filtered && rows < expected))
    return Fail(
        ErrorCode::kRefused,
        fmt::format("{}: {} rows of load {} in {}, {} were pushed: the server lost some, or was "
                    "interrupted; pull again",
                    run_.client.url(), rows, load.load_id, table.name, expected));
  return {};
}

Result<void> FactPuller::SetShifts(const std::vector<PushRow>& loads, std::vector<LoadIds>& ids) {
  if (loads.size() < 2) return {};
  std::map<std::uint64_t, std::size_t> place;
  for (std::size_t i = 0; i < loads.size(); ++i) place[loads[i].load_id] = i;
  const PushRow& first = loads.front();
  for (const FleetTable& table : run_.schema.tables) {
    const bool is_numbered = table.has_id && table.name != "run" && table.name != "launch" &&
                             (table.kind == FleetTable::Kind::kFact || table.name == "stack_frame");
    if (!is_numbered) continue;
    // Not all records are pushed, and facts refer to those that are not.
    const std::string from = table.name == "record" ? "max(ifNull(last_record_id, 0)) FROM log_file"
                                                    : "max(id) FROM " + QuoteName(table.name);
    std::vector<std::int64_t> last(loads.size(), 0);
    ASSIGN_OR_RETURN(
        [[maybe_unused]] const std::uint64_t rows,
        StreamRows(run_.client,
                   fmt::format("SELECT load_id, {} "
                               "WHERE job = {} AND day = {} AND run_id = {} GROUP BY load_id",
                               from, QuoteText(first.job), QuoteDay(first.day),
                               QuoteUuid(ToText(first.run_id))),
                   run_.limit, [&](RowBinaryReader& reader) -> Result<void> {
                     const std::uint64_t load = reader.UInt64();
                     const std::int64_t id = reader.Int64();
                     const auto found = place.find(load);
                     if (!reader.is_short() && found != place.end()) last[found->second] = id;
                     return {};
                   }));
    std::int64_t shift = 0;
    for (std::size_t i = 0; i < loads.size(); ++i) {
      ids[i].shift[table.name] = shift;
      shift += last[i];
    }
  }
  return {};
}

Result<void> FactPuller::PullPools(const PushRow& load, std::size_t index, LoadIds& ids) {
  constexpr std::array<std::string_view, 4> kPools = {"text", "content", "cache_key",
                                                      "stack_frame"};
  for (const std::string_view name : kPools) {
    // Strings that are not referred to again are of no use to a second load.
    if (name == "text" && index > 0) continue;
    if (const FleetTable* table = run_.schema.Find(name))
      RETURN_IF_ERROR(PullTable(*table, load, index, ids));
  }
  return {};
}

Result<void> FactPuller::PullFacts(const PushRow& load, std::size_t index, LoadIds& ids) {
  for (const FleetTable& table : run_.schema.tables)
    if (table.kind == FleetTable::Kind::kFact) RETURN_IF_ERROR(PullTable(table, load, index, ids));
  if (const FleetTable* table = run_.schema.Find("payload_content"))
    RETURN_IF_ERROR(PullTable(*table, load, index, ids));
  return {};
}

}  // namespace tlparse
