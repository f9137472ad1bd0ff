#include "store/schema.h"

#include <fmt/format.h>

#include "store/database.h"
#include "store/import_log.h"

namespace tlparse {

Result<void> AddImportCodes(Database& database) {
  ASSIGN_OR_RETURN(
      Statement insert,
      database.Prepare("INSERT INTO import_code VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"));
  for (int code = 1; code < static_cast<int>(ImportCode::kCount); ++code) {
    const ImportCodeInfo& info = Info(static_cast<ImportCode>(code));
    insert.Bind(1, std::int64_t{code});
    insert.Bind(2, Name(info.severity));
    insert.Bind(3, info.name);
    insert.Bind(4, info.advice);
    RETURN_IF_ERROR(insert.Run());
  }
  return {};
}

Result<void> CreateSchema(Database& database) {
  RETURN_IF_ERROR(database.Execute(fmt::format(
      "PRAGMA application_id = {}; PRAGMA user_version = {};", kApplicationId, kSchemaVersion)));
  for (const char* script : SchemaScripts()) RETURN_IF_ERROR(database.Execute(script));
  return AddImportCodes(database);
}

namespace {

Result<void> AddMissingTables(Database& database, Database& current) {
  ASSIGN_OR_RETURN(Statement tables,
                   current.Prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"));
  ASSIGN_OR_RETURN(
      Statement known,
      database.Prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, tables.Step());
    if (!has_row) return {};
    known.Bind(1, tables.Text(0));
    ASSIGN_OR_RETURN(const bool is_known, known.Step());
    known.Reset();
    if (!is_known) RETURN_IF_ERROR(database.Execute(tables.Text(1)));
  }
}

Result<void> ReplaceViews(Database& database, Database& current) {
  ASSIGN_OR_RETURN(Statement views,
                   current.Prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'view'"));
  ASSIGN_OR_RETURN(Statement known,
                   database.Prepare("SELECT 1 FROM sqlite_schema WHERE type = 'view' AND name = ? "
                                    "AND sql = ?"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, views.Step());
    if (!has_row) return {};
    known.Bind(1, views.Text(0));
    known.Bind(2, views.Text(1));
    ASSIGN_OR_RETURN(const bool is_same, known.Step());
    known.Reset();
    if (is_same) continue;
    RETURN_IF_ERROR(database.Execute(fmt::format("DROP VIEW IF EXISTS \"{}\"", views.Text(0))));
    RETURN_IF_ERROR(database.Execute(views.Text(1)));
  }
}

}  // namespace

Result<void> AddMissingColumns(Database& database) {
  ASSIGN_OR_RETURN(Database current, Database::Open(":memory:", Database::Mode::kBulkLoad));
  RETURN_IF_ERROR(CreateSchema(current));
  RETURN_IF_ERROR(AddMissingTables(database, current));
  ASSIGN_OR_RETURN(
      Statement columns,
      current.Prepare("SELECT s.name, c.name, c.type, c.\"notnull\" OR c.pk FROM sqlite_schema s "
                      "JOIN pragma_table_info(s.name) c WHERE s.type = 'table'"));
  ASSIGN_OR_RETURN(Statement known,
                   database.Prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = ?"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, columns.Step());
    if (!has_row) break;
    known.Bind(1, columns.Text(0));
    known.Bind(2, columns.Text(1));
    ASSIGN_OR_RETURN(const bool is_known, known.Step());
    known.Reset();
    if (is_known) continue;
    if (columns.Int(3) != 0) {
      return Fail(ErrorCode::kNotATrace,
                  fmt::format("'{}' was written by an earlier tlparse and lacks {}.{}: ingest the "
                              "logs again into a new database",
                              database.path(), columns.Text(0), columns.Text(1)));
    }
    RETURN_IF_ERROR(
        database.Execute(fmt::format("ALTER TABLE \"{}\" ADD COLUMN \"{}\" {}", columns.Text(0),
                                     columns.Text(1), columns.Text(2))));
  }
  return ReplaceViews(database, current);
}

Result<void> CreateIndexes(Database& database) { return database.Execute(IndexScript()); }

Result<void> CheckSchema(Database& database) {
  ASSIGN_OR_RETURN(const std::int64_t application, database.QueryInt("PRAGMA application_id"));
  if (application != kApplicationId) {
    return Fail(
        ErrorCode::kNotATrace,
        fmt::format("'{}' is an SQLite database, but not one that tlparse wrote", database.path()));
  }
  ASSIGN_OR_RETURN(const std::int64_t version, database.QueryInt("PRAGMA user_version"));
  if (version != kSchemaVersion) {
    return Fail(
        ErrorCode::kNotATrace,
        version < kSchemaVersion
            ? fmt::format("'{}' was written by an earlier tlparse (schema version {}, this one "
                          "reads {}): ingest the logs again, tlparse LOGS -o DIRECTORY --overwrite",
                          database.path(), version, kSchemaVersion)
            : fmt::format("'{}' was written by a newer tlparse (schema version {}, this one reads "
                          "{}): read it with that tlparse",
                          database.path(), version, kSchemaVersion));
  }
  return {};
}

}  // namespace tlparse
