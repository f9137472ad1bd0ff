#include "fleet/pull_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "fleet/sql_quote.h"
#include "fleet/table_writer.h"

namespace tlparse {
namespace {

using Source = FleetColumn::Source;

// Of each table at once: the server sorts the rows of a query by load.
constexpr std::size_t kLoadsAtOnce = 64;

bool HasColumn(const FleetTable& table, std::string_view name) {
  return std::any_of(table.columns.begin(), table.columns.end(),
                     [&](const FleetColumn& column) { return column.name == name; });
}

// What the push wrote is counted in its row: nothing was written to other tables.
std::uint64_t PushedRows(const PushRow& load, const FleetTable& table) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < std::min(load.tables.size(), load.row_counts.size()); ++i)
    if (load.tables[i] == table.name) count = load.row_counts[i];
  return count;
}

// Whether rows of the table refer to rows below a content.
bool RefersBelowContents(const FleetTable& table) {
  return std::any_of(table.columns.begin(), table.columns.end(), [&](const FleetColumn& column) {
    return column.source == Source::kHash &&
           table.sqlite_columns[static_cast<std::size_t>(column.sqlite_column)].reference ==
               ColumnReference::kOwned;
  });
}

// load_id first; in the order of the loads, and within a load in that of the table.
std::string SelectRows(const FleetTable& table, std::span<const PushRow> loads,
                       const std::string& where) {
  std::string select = "SELECT load_id";
  for (const FleetColumn& column : table.columns) select += ", " + QuoteName(column.name);
  select += fmt::format(" FROM {} WHERE {}", QuoteName(table.name), where);
  std::string order;
  if (loads.size() > 1) {
    std::vector<std::uint64_t> ids, places;
    for (const PushRow& load : loads) {
      ids.push_back(load.load_id);
      places.push_back(places.size());
    }
    order = fmt::format("transform(load_id, [{}], [{}], toUInt64({}))", fmt::join(ids, ","),
                        fmt::join(places, ","), places.size());
  }
  for (const std::string& name : table.order_by)
    order += (order.empty() ? "" : ", ") + QuoteName(name);
  return order.empty() ? select : select + " ORDER BY " + order;
}

}  // namespace

std::string OfLoads(std::span<const PushRow> loads) {
  std::set<std::string> days;
  std::vector<std::uint64_t> ids;
  for (const PushRow& load : loads) {
    days.insert(QuoteDay(load.day));
    ids.push_back(load.load_id);
  }
  const PushRow& first = loads.front();
  return fmt::format("job = {} AND day IN ({}) AND run_id = {} AND load_id IN {}",
                     QuoteText(first.job), fmt::join(days, ", "), QuoteUuid(ToText(first.run_id)),
                     QuoteList(ids));
}

std::string OfRanks(const RankRanges& ranks) {
  std::string condition;
  for (const auto& [first, last] : ranks)
    condition += fmt::format("{}(process_rank >= {} AND process_rank <= {})",
                             condition.empty() ? "" : " OR ", first, last);
  return condition.empty() ? condition : "(" + condition + ")";
}

Result<std::map<std::uint64_t, std::set<std::int64_t>>> FactPuller::ReadLogs(
    std::span<const PushRow> loads) {
  std::map<std::uint64_t, std::set<std::int64_t>> logs;
  ASSIGN_OR_RETURN(
      [[maybe_unused]] const std::uint64_t count,
      StreamRows(run_.client,
                 fmt::format("SELECT DISTINCT load_id, log_file_id FROM process WHERE {} AND {}",
                             OfLoads(loads), OfRanks(ranks_)),
                 run_.limit, [&](RowBinaryReader& reader) -> Result<void> {
                   const std::uint64_t load = reader.UInt64();
                   const std::int64_t id = reader.Int64();
                   if (!reader.is_short()) logs[load].insert(id);
                   return {};
                 }));
  return logs;
}

Result<void> FactPuller::PullTable(const FleetTable& table, std::size_t begin, std::size_t end) {
  const std::span<const PushRow> loads = loads_.subspan(begin, end - begin);
  std::map<std::uint64_t, std::size_t> places;
  std::uint64_t expected = 0;
  for (std::size_t i = begin; i < end; ++i) {
    places[loads_[i].load_id] = i;
    expected += PushedRows(loads_[i], table);
  }
  if (expected == 0) return {};
  if (on_progress_) on_progress_(run_.rows, table.name);
  const bool is_filtered = !ranks_.empty();
  std::string where = OfLoads(loads);
  if (is_filtered && HasColumn(table, "process_rank")) where += " AND " + OfRanks(ranks_);
  std::map<std::uint64_t, std::set<std::int64_t>> logs;
  if (is_filtered && table.name == "log_file") {
    ASSIGN_OR_RETURN(logs, ReadLogs(loads));
  }
  ASSIGN_OR_RETURN(const ContentIds contents, RefersBelowContents(table)
                                                  ? ReadContentIds(run_.database)
                                                  : Result<ContentIds>(ContentIds()));
  std::vector<std::uint64_t> counts(end - begin);
  std::optional<TableWriter> writer;
  std::size_t place = loads_.size();
  const auto read_row = [&](RowBinaryReader& reader) -> Result<void> {
    const std::uint64_t load_id = reader.UInt64();
    if (reader.is_short()) return {};
    if (place == loads_.size() || loads_[place].load_id != load_id) {
      const auto found = places.find(load_id);
      if (found == places.end())
        return Fail(ErrorCode::kRefused,
                    fmt::format("{}: rows of another load in {}", run_.client.url(), table.name));
      place = found->second;
      writer.emplace(run_, table, place, ids_[place], loads_[place].host, contents);
      if (is_filtered && table.name == "log_file") writer->SetLogs(&logs[load_id]);
      RETURN_IF_ERROR(writer->Prepare());
    }
    RETURN_IF_ERROR(writer->Read(reader));
    if (!reader.is_short()) ++counts[place - begin];
    return {};
  };
  ASSIGN_OR_RETURN([[maybe_unused]] const std::uint64_t rows,
                   StreamRows(run_.client, SelectRows(table, loads, where), run_.limit, read_row));
  for (std::size_t i = begin; i < end; ++i) {
    const std::uint64_t pushed = PushedRows(loads_[i], table), count = counts[i - begin];
    if (count == pushed || (is_filtered && count < pushed)) continue;
    return Fail(
        ErrorCode::kRefused,
        fmt::format("{}: {} rows of load {} in {}, {} were pushed: the server lost some, or was "
                    "interrupted; pull again",
                    run_.client.url(), count, loads_[i].load_id, table.name, pushed));
  }
  return {};
}

Result<void> FactPuller::PullTables(std::span<const FleetTable* const> tables) {
  for (std::size_t begin = 0; begin < loads_.size(); begin += kLoadsAtOnce)
    for (const FleetTable* table : tables) {
      // Strings that are not referred to again are of no use to a second load.
      const bool is_first_only = table->name == "text";
      if (is_first_only && begin > 0) continue;
      RETURN_IF_ERROR(PullTable(*table, begin,
                                is_first_only ? 1 : std::min(loads_.size(), begin + kLoadsAtOnce)));
    }
  return {};
}

Result<void> FactPuller::SetShifts() {
  if (loads_.size() < 2) return {};
  std::map<std::uint64_t, std::size_t> place;
  for (std::size_t i = 0; i < loads_.size(); ++i) place[loads_[i].load_id] = i;
  for (const FleetTable& table : run_.schema.tables) {
    const bool is_numbered = table.has_id && table.name != "run" && table.name != "launch" &&
                             table.name != "role" &&
                             (table.kind == FleetTable::Kind::kFact || table.name == "stack_frame");
    if (!is_numbered) continue;
    // Not all records are pushed, and facts refer to those that are not.
    const std::string from = table.name == "record" ? "max(ifNull(last_record_id, 0)) FROM log_file"
                                                    : "max(id) FROM " + QuoteName(table.name);
    std::vector<std::int64_t> last(loads_.size(), 0);
    ASSIGN_OR_RETURN([[maybe_unused]] const std::uint64_t rows,
                     StreamRows(run_.client,
                                fmt::format("SELECT load_id, {} WHERE {} GROUP BY load_id", from,
                                            OfLoads(loads_)),
                                run_.limit, [&](RowBinaryReader& reader) -> Result<void> {
                                  const std::uint64_t load = reader.UInt64();
                                  const std::int64_t id = reader.Int64();
                                  const auto found = place.find(load);
                                  if (!reader.is_short() && found != place.end())
                                    last[found->second] = id;
                                  return {};
                                }));
    std::int64_t shift = 0;
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      ids_[i].shift[table.name] = shift;
      shift += last[i];
    }
  }
  return {};
}

Result<void> FactPuller::PullPools() {
  std::vector<const FleetTable*> tables;
  for (const std::string_view name : {"text", "content", "cache_key", "stack_frame"})
    if (const FleetTable* table = run_.schema.Find(name)) tables.push_back(table);
  return PullTables(tables);
}

Result<void> FactPuller::PullFacts() {
  std::vector<const FleetTable*> tables;
  for (const FleetTable& table : run_.schema.tables)
    if (table.kind == FleetTable::Kind::kFact) tables.push_back(&table);
  if (const FleetTable* table = run_.schema.Find("payload_content")) tables.push_back(table);
  return PullTables(tables);
}

}  // namespace tlparse
