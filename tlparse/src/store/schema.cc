#include "store/schema.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/file_descriptor.h"
#include "store/database.h"

namespace tlparse {

namespace {

// Unpacks the image; `use` gets its bytes in order, kChunkBytes at a time but the last, and returns
// whether to go on. True if all bytes were used.
constexpr std::size_t kChunkBytes = 1 << 16;
template <typename Use>
bool Unpack(const SchemaImage& schema, Use&& use) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     ZSTD_freeDCtx);
  const std::unique_ptr<unsigned char[]> chunk(new unsigned char[kChunkBytes]);
  ZSTD_inBuffer packed{schema.packed, schema.packed_bytes, 0};
  ZSTD_outBuffer unpacked{chunk.get(), kChunkBytes, 0};
  while (true) {
    const std::size_t left = ZSTD_decompressStream(context.get(), &unpacked, &packed);
    if (ZSTD_isError(left)) return false;
    if (left != 0 && unpacked.pos < kChunkBytes) return false;  // the image ends early
    if (!use(chunk.get(), unpacked.pos)) return false;
    if (left == 0) return true;
    unpacked.pos = 0;
  }
}

// Writes the bytes at this place of the file, without the blocks that hold only zeros: most of a
// page of an empty table.
bool WriteSparsely(int descriptor, const unsigned char* bytes, std::size_t size, off_t at) {
  constexpr std::size_t kHoleBytes = 4096;
  static constexpr unsigned char kZeros[kHoleBytes] = {};
  for (std::size_t begin = 0; begin < size; begin += kHoleBytes) {
    const std::size_t count = std::min(kHoleBytes, size - begin);
    if (std::memcmp(bytes + begin, kZeros, count) == 0) continue;
    for (std::size_t done = 0; done < count;) {
      const ssize_t written = pwrite(descriptor, bytes + begin + done, count - done,
                                     at + static_cast<off_t>(begin + done));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      done += static_cast<std::size_t>(written);
    }
  }
  return true;
}

// Errors leave errno.
bool WriteImage(const std::string& path) {
  const SchemaImage schema = EmbeddedSchema();
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file.is_open() || ftruncate(file.get(), static_cast<off_t>(schema.size_bytes)) != 0)
    return false;
  off_t at = 0;
  return Unpack(schema, [&](const unsigned char* bytes, std::size_t size) {
    const off_t begin = std::exchange(at, at + static_cast<off_t>(size));
    return WriteSparsely(file.get(), bytes, size, begin);
  });
}

}  // namespace

Result<Database> CreateDatabase(const std::string& path) {
  if (!WriteImage(path))
    return Fail(ErrorCode::kIo,
                fmt::format("cannot write the database '{}': {}", path, std::strerror(errno)));
  return Database::Open(path, Database::Mode::kBulkLoad);
}

Result<Database> SchemaInMemory() {
  const SchemaImage schema = EmbeddedSchema();
  ASSIGN_OR_RETURN(Database database, Database::Open(":memory:", Database::Mode::kBulkLoad));
  const auto size_bytes = static_cast<sqlite3_int64>(schema.size_bytes);
  auto* const image = static_cast<unsigned char*>(sqlite3_malloc64(schema.size_bytes));
  unsigned char* end = image;
  const bool is_whole =
      image != nullptr && Unpack(schema, [&](const void* bytes, std::size_t size) {
        std::memcpy(std::exchange(end, end + size), bytes, size);
        return true;
      });
  if (!is_whole) {
    sqlite3_free(image);
    return Fail(ErrorCode::kInternal, "the schema of this program cannot be unpacked");
  }
  // From here on the connection owns the image.
  if (sqlite3_deserialize(database.handle(), "main", image, size_bytes, size_bytes,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) ==
      SQLITE_OK)
    return database;
  return Fail(ErrorCode::kInternal, sqlite3_errmsg(database.handle()));
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
  ASSIGN_OR_RETURN(Database current, SchemaInMemory());
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
  ASSIGN_OR_RETURN(Database current, SchemaInMemory());
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
