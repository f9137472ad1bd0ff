// The rows behind a finding: those of its query.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "findings/context.h"

namespace tlparse {
namespace {

// A query may return very many rows: that there are more than these is enough to know.
constexpr std::size_t kMostRows = 6, kMostCounted = 1000;

// The columns of a query that name a row: by its own id, else by that of what it belongs to.
struct RowNames {
  std::string table;  // behind the query's first FROM
  int id = -1, record = -1, compile = -1, process = -1, profile = -1, rank = -1;
};

constexpr std::array<std::string_view, 6> kNames = {"id",         "record_id",  "compile_id",
                                                    "process_id", "profile_id", "rank"};

std::string ColumnsOf(const Statement& statement) {
  std::string columns;
  for (const std::string_view name : kNames) {
    for (int column = 0; column < statement.column_count(); ++column) {
      if (statement.ColumnName(column) != name) continue;
      columns += fmt::format("{}{}", columns.empty() ? "" : ", ", name);
      break;
    }
  }
  return columns.empty() ? "*" : columns;
}

RowNames NamesOf(std::string_view query, const Statement& statement) {
  RowNames names;
  constexpr std::string_view kFrom = " FROM ";
  std::string_view table = query.substr(std::min(query.find(kFrom), query.size() - kFrom.size()));
  table.remove_prefix(kFrom.size());
  names.table = table.substr(0, table.find(' '));
  for (int column = statement.column_count() - 1; column >= 0; --column) {
    const std::string_view name = statement.ColumnName(column);
    if (name == "id") names.id = column;
    if (name == "record_id") names.record = column;
    if (name == "compile_id") names.compile = column;
    if (name == "process_id") names.process = column;
    if (name == "profile_id") names.profile = column;
    if (name == "rank") names.rank = column;
  }
  return names;
}

std::optional<FindingRow> RowOf(const RowNames& names, const Statement& row) {
  const auto has = [&](int column) { return column >= 0 && !row.IsNull(column); };
  if (has(names.id)) return FindingRow{names.table, row.Int(names.id)};
  if (has(names.record)) return FindingRow{"record", row.Int(names.record)};
  if (names.table == "compile_history" && has(names.compile))
    return FindingRow{"compile", row.Int(names.compile)};
  if (has(names.process)) return FindingRow{"process", row.Int(names.process)};
  if (has(names.profile)) return FindingRow{"profile", row.Int(names.profile)};
  return std::nullopt;
}

// What a query returns, of each row what names it, and its rank.
struct RowsOfQuery {
  struct One {
    FindingRow row;
    std::optional<std::int64_t> rank;
  };
  std::vector<One> rows;
  bool has_rank = false;
  bool has_more = false;
};
using KnownQueries = std::map<std::string, RowsOfQuery>;  // findings may have one query

// A row of rank_summary is a process: what the view sums up of all of them is not needed, where the
// query does not name it.
std::string WithoutSums(const std::string& query) {
  constexpr std::string_view kBegin = "SELECT * FROM rank_summary WHERE process_id IN ";
  if (!query.starts_with(kBegin)) return query;
  return "SELECT process_id, rank FROM (SELECT id AS process_id, rank FROM process) "
         "WHERE process_id IN " +
         query.substr(kBegin.size());
}

Result<const RowsOfQuery*> Run(Database& database, const std::string& query, KnownQueries& known) {
  const auto [found, is_new] = known.try_emplace(query);
  if (!is_new) return &found->second;
  RowsOfQuery& result = found->second;
  ASSIGN_OR_RETURN(const Statement whole, database.Prepare(query));
  // What names a row: what else a view works out is not needed.
  ASSIGN_OR_RETURN(
      Statement statement,
      database.Prepare(fmt::format("SELECT {} FROM ({})", ColumnsOf(whole), WithoutSums(query))));
  const RowNames names = NamesOf(query, statement);
  result.has_rank = names.rank >= 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, statement.Step());
    if (!has_row) break;
    std::optional<FindingRow> row = RowOf(names, statement);
    if (!row) continue;
    if (result.rows.size() == kMostCounted) {
      result.has_more = true;
      break;
    }
    result.rows.push_back(
        {*std::move(row), result.has_rank ? statement.OptionalInt(names.rank) : std::nullopt});
  }
  return &result;
}

Result<void> SetRows(Database& database, Finding& finding, KnownQueries& known) {
  if (finding.query.empty()) return {};
  ASSIGN_OR_RETURN(const RowsOfQuery* const result, Run(database, finding.query, known));
  finding.row_count = result->rows.size();
  finding.has_more_rows = result->has_more;
  std::vector<FindingRow> others;
  for (const RowsOfQuery::One& one : result->rows) {
    const bool is_own =
        !result->has_rank || finding.ranks.empty() ||
        std::binary_search(finding.ranks.begin(), finding.ranks.end(), one.rank.value_or(-1));
    std::vector<FindingRow>& list = is_own ? finding.rows : others;
    // A record may have several rows of a table.
    const bool is_known = std::any_of(list.begin(), list.end(), [&](const FindingRow& known_row) {
      return known_row.table == one.row.table && known_row.id == one.row.id;
    });
    if (list.size() < kMostRows && !is_known) list.push_back(one.row);
  }
  // Of each side, if both are there.
  const std::size_t most_own = others.empty() ? kMostRows : kMostRows - 1;
  finding.rows.resize(std::min(finding.rows.size(), most_own));
  others.resize(std::min(others.size(), kMostRows - finding.rows.size()));
  finding.rows.insert(finding.rows.end(), others.begin(), others.end());
  return {};
}

Result<void> SetAllRows(Database& database, std::vector<Finding>& findings, KnownQueries& known) {
  for (Finding& finding : findings) {
    RETURN_IF_ERROR(SetRows(database, finding, known));
    RETURN_IF_ERROR(SetAllRows(database, finding.evidence, known));
  }
  return {};
}

}  // namespace

Result<void> SetRows(Database& database, std::vector<Finding>& findings) {
  KnownQueries known;
  return SetAllRows(database, findings, known);
}

}  // namespace tlparse
