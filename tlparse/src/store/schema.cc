#include "store/schema.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <zstd.h>

#include <memory>
#include <set>
#include <string>

#include "store/database.h"

namespace tlparse {

Result<void> CreateSchema(Database& database) {
  const SchemaImage schema = EmbeddedSchema();
  const std::unique_ptr<unsigned char[]> image(new unsigned char[schema.size_bytes]);
  if (ZSTD_decompress(image.get(), schema.size_bytes, schema.packed, schema.packed_bytes) !=
      schema.size_bytes)
    return Fail(ErrorCode::kInternal, "the schema of this program cannot be unpacked");
  ASSIGN_OR_RETURN(Database source, Database::Open(":memory:", Database::Mode::kBulkLoad));
  const auto size_bytes = static_cast<sqlite3_int64>(schema.size_bytes);
  sqlite3_backup* copy = nullptr;
  if (sqlite3_deserialize(source.handle(), "main", image.get(), size_bytes, size_bytes,
                          SQLITE_DESERIALIZE_READONLY) == SQLITE_OK)
    copy = sqlite3_backup_init(database.handle(), "main", source.handle(), "main");
  if (copy != nullptr) sqlite3_backup_step(copy, -1);
  if (sqlite3_backup_finish(copy) == SQLITE_OK && copy != nullptr) return {};
  return Fail(ErrorCode::kDatabase,
              fmt::format("creating '{}': {}", database.path(), sqlite3_errmsg(database.handle())));
}

namespace {

// Runs the CREATE statements of this type that `current` has and `database` has not: none of that
// name, or, for views, another text.
Result<void> AddMissing(std::string_view type, Database& database, Database& current) {
  const bool is_view = type == "view";
  ASSIGN_OR_RETURN(
      Statement wanted,
      current.Prepare(
          "SELECT name, sql FROM sqlite_schema WHERE type = ? AND sql IS NOT NULL ORDER BY rowid"));
  wanted.Bind(1, type);
  ASSIGN_OR_RETURN(Statement known, database.Prepare("SELECT 1 FROM sqlite_schema WHERE type = ? "
                                                     "AND name = ? AND (?3 IS NULL OR sql = ?3)"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, wanted.Step());
    if (!has_row) return {};
    known.Bind(1, type);
    known.Bind(2, wanted.Text(0));
    known.Bind(3, is_view ? std::optional(wanted.Text(1)) : std::nullopt);
    ASSIGN_OR_RETURN(const bool is_known, known.Step());
    known.Reset();
    if (is_known) continue;
    if (is_view)
      RETURN_IF_ERROR(database.Execute(fmt::format("DROP VIEW IF EXISTS \"{}\"", wanted.Text(0))));
    RETURN_IF_ERROR(database.Execute(wanted.Text(1)));
  }
}

Result<void> AddMissingColumns(Database& database, Database& current) {
  ASSIGN_OR_RETURN(
      Statement columns,
      current.Prepare(
          "SELECT s.name, c.name, c.type, c.\"notnull\" "
          "OR c.pk, (SELECT ' REFERENCES \"' || f.\"table\" || '\"(\"' || f.\"to\" || '\")' "
          "FROM pragma_foreign_key_list(s.name) f WHERE f.\"from\" = c.name) "
          "FROM sqlite_schema s JOIN pragma_table_info(s.name) c WHERE s.type = 'table'"));
  ASSIGN_OR_RETURN(Statement known,
                   database.Prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = ?"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, columns.Step());
    if (!has_row) return {};
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
        database.Execute(fmt::format("ALTER TABLE \"{}\" ADD COLUMN \"{}\" {}{}", columns.Text(0),
                                     columns.Text(1), columns.Text(2), columns.Text(4))));
  }
}

// The rows that every database has: import codes and lookup tables. Rows that a newer
// tlparse added stay.
Result<void> AddMissingRows(Database& database, Database& current) {
  ASSIGN_OR_RETURN(
      Statement tables,
      current.Prepare("SELECT s.name, group_concat('\"' || c.name || '\"'), group_concat('?') "
                      "FROM sqlite_schema s JOIN pragma_table_info(s.name) c "
                      "WHERE s.type = 'table' GROUP BY s.name"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_table, tables.Step());
    if (!has_table) return {};
    ASSIGN_OR_RETURN(Statement rows, current.Prepare(fmt::format("SELECT {} FROM \"{}\"",
                                                                 tables.Text(1), tables.Text(0))));
    ASSIGN_OR_RETURN(Statement insert,
                     database.Prepare(fmt::format("INSERT OR REPLACE INTO \"{}\" ({}) VALUES ({})",
                                                  tables.Text(0), tables.Text(1), tables.Text(2))));
    while (true) {
      ASSIGN_OR_RETURN(const bool has_row, rows.Step());
      if (!has_row) break;
      for (int i = 0; i < rows.column_count(); ++i)
        sqlite3_bind_value(insert.handle(), i + 1, sqlite3_column_value(rows.handle(), i));
      RETURN_IF_ERROR(insert.Run());
    }
  }
}

}  // namespace

Result<void> MigrateSchema(Database& database) {
  ASSIGN_OR_RETURN(Database current, Database::Open(":memory:", Database::Mode::kBulkLoad));
  RETURN_IF_ERROR(CreateSchema(current));
  RETURN_IF_ERROR(CreateIndexes(current));
  RETURN_IF_ERROR(AddMissing("table", database, current));
  RETURN_IF_ERROR(AddMissingColumns(database, current));
  RETURN_IF_ERROR(AddMissingRows(database, current));
  RETURN_IF_ERROR(AddMissing("index", database, current));
  RETURN_IF_ERROR(AddMissing("view", database, current));
  return FillRecordKinds(database);
}

Result<void> FillRecordKinds(Database& database) {
  return database.Execute(
      "INSERT INTO record_kind_row "
      "SELECT t.text, b.block "
      "FROM (SELECT DISTINCT kind_id, id >> 6 AS block FROM record_row) b "
      "JOIN text_row t ON t.id = b.kind_id "
      "WHERE NOT EXISTS (SELECT 1 FROM record_kind_row)");
}

namespace {

// "name.column" of all tables and views, and the names of all views.
Result<std::set<std::string>> NamesOf(Database& database) {
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare("SELECT s.name || '.' || c.name "
                       "FROM sqlite_schema s JOIN pragma_table_info(s.name) c "
                       "WHERE s.type IN ('table', 'view') "
                       "UNION ALL SELECT name FROM sqlite_schema WHERE type = 'view'"));
  std::set<std::string> names;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return names;
    names.emplace(rows.Text(0));
  }
}

Error Lacks(const Database& database, const std::string& name) {
  return Error{ErrorCode::kNotATrace,
               fmt::format("'{0}' was written by an earlier tlparse and lacks {1}: tlparse LOGS "
                           "--db {0} --db-only adds what is missing, without rows for logs that it "
                           "holds already; or ingest the logs again, tlparse LOGS -o DIRECTORY "
                           "--overwrite",
                           database.path(), name)};
}

// Calls `use` with each name that the database lacks, until it returns false.
template <typename Use>
Result<void> ForEachMissing(Database& database, Use&& use) {
  ASSIGN_OR_RETURN(Database current, Database::Open(":memory:", Database::Mode::kBulkLoad));
  RETURN_IF_ERROR(CreateSchema(current));
  ASSIGN_OR_RETURN(const std::set<std::string> wanted, NamesOf(current));
  ASSIGN_OR_RETURN(const std::set<std::string> known, NamesOf(database));
  for (const std::string& name : wanted)
    if (!known.contains(name) && !use(name)) break;
  return {};
}

}  // namespace

Result<void> CheckIsComplete(Database& database) {
  std::optional<Error> error;
  RETURN_IF_ERROR(ForEachMissing(database, [&](const std::string& name) {
    error = Lacks(database, name);
    return false;
  }));
  if (error) return tl::unexpected<Error>(std::move(*error));
  return {};
}

std::optional<Error> WhyMissing(Database& database, std::string_view message) {
  constexpr std::string_view kTable = "no such table: ", kColumn = "no such column: ";
  const bool is_table = message.starts_with(kTable);
  if (!is_table && !message.starts_with(kColumn)) return std::nullopt;
  std::string_view wanted = message.substr(is_table ? kTable.size() : kColumn.size());
  wanted = wanted.substr(wanted.rfind('.') + 1);  // "s.is_miss", "main.role"
  std::optional<Error> error;
  const Result<void> looked = ForEachMissing(database, [&](const std::string& name) {
    const std::size_t dot = name.find('.');
    const std::string_view part =
        is_table ? std::string_view(name).substr(0, dot)
                 : std::string_view(name).substr(dot == std::string::npos ? 0 : dot + 1);
    if (part == wanted) error = Lacks(database, name);
    return !error;
  });
  return looked ? error : std::nullopt;
}

Result<void> CreateIndexes(Database& database) { return database.Execute(IndexScript()); }

Result<void> CheckSchema(Database& database) {
  struct stat status {};
  if (::stat(database.path().c_str(), &status) == 0 &&
      (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)))
    return Fail(ErrorCode::kNotATrace,
                fmt::format("'{}' is a device: a database is a file", database.path()));
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
