#include "fleet/row_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fleet/row_filter.h"
#include "fleet/row_writer.h"
#include "store/any_rows.h"

namespace tlparse {
namespace {

Result<std::set<std::string>> ColumnsThere(Database& database, const std::string& table) {
  ASSIGN_OR_RETURN(Statement read, database.Prepare("SELECT name FROM pragma_table_info(?)"));
  read.Bind(1, std::string_view(table));
  std::set<std::string> names;
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(std::move(read))) {
    names.emplace(row.Text("name"));
  }
  return names;
}

}  // namespace

Result<void> WriteRows(PushContext& context, const FleetTable& table, const RowOptions& options,
                       const std::string& key_bytes, TableInsert& insert,
                       const std::function<void(std::uint64_t)>& on_row) {
  ASSIGN_OR_RETURN(const std::set<std::string> columns,
                   ColumnsThere(context.database(), table.sqlite_name));
  if (columns.empty()) return {};  // the database is older than the table
  RowWriter writer(context, table, options, columns);
  std::string sql = writer.select() + " FROM " + table.sqlite_name + " r";
  if (const std::string omitted = RowsThatAnswersRead(table, options); !omitted.empty())
    sql += " WHERE " + omitted;
  const RowFilter filter(context, table);
  const bool is_pool = table.kind == FleetTable::Kind::kPool;
  ASSIGN_OR_RETURN(Statement read, context.database().Prepare(sql));
  std::uint64_t count = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, read.Step());
    if (!has_row) break;
    if (++count % 4096 == 0) on_row(4096);
    std::int64_t process = PushContext::kNone;
    if (is_pool) {
      if (!filter.WantsPool(read)) continue;
    } else {
      if (writer.has_owner()) {
        ASSIGN_OR_RETURN(process, writer.ProcessOf(read));
      }
      const bool is_wanted =
          process == PushContext::kNone ? filter.WantsOther(read) : context.run().Has(process);
      if (!is_wanted) continue;
    }
    insert.row() += key_bytes;
    RETURN_IF_ERROR(writer.Write(read, process, insert.row()));
    RETURN_IF_ERROR(insert.EndRow());
  }
  on_row(count % 4096);
  return {};
}

Result<void> WriteContentRows(PushContext& context, const FleetTable& table,
                              const RowOptions& options, std::uint64_t content_version,
                              const std::function<bool(std::int64_t)>& is_wanted,
                              TableInsert& insert) {
  ASSIGN_OR_RETURN(const std::set<std::string> columns,
                   ColumnsThere(context.database(), table.sqlite_name));
  if (columns.empty()) return {};
  RowWriter writer(context, table, options, columns);
  const int content_at = table.FindSqlite("content_id");
  int parent_at = -1;
  for (std::size_t i = 0; i < table.sqlite_columns.size(); ++i)
    if (table.sqlite_columns[i].reference == ColumnReference::kOwned)
      parent_at = static_cast<int>(i);
  ASSIGN_OR_RETURN(Statement read, context.database().Prepare(writer.select() + " FROM " +
                                                              table.sqlite_name + " r"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, read.Step());
    if (!has_row) return {};
    std::int64_t content = -1;
    if (content_at >= 0) {
      content = read.Int(content_at);
    } else if (const PushContext::Owned* parent = context.FindOwned(
                   table.sqlite_columns[static_cast<std::size_t>(parent_at)].referenced,
                   read.Int(parent_at))) {
      content = parent->content;
    }
    if (!is_wanted(content)) continue;
    RowBinaryWriter write(insert.row());
    write.Hash(context.ContentHash(content));
    write.UInt64(content_version);
    RETURN_IF_ERROR(writer.Write(read, PushContext::kNone, insert.row()));
    RETURN_IF_ERROR(insert.EndRow());
  }
}

}  // namespace tlparse
