// The schema, embedded from schemas/sql at build time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// PRAGMA user_version of the databases this program writes and reads. Columns may be added without
// a new version.
inline constexpr std::int64_t kSchemaVersion = 4;
// PRAGMA application_id: "TLPR".
inline constexpr std::int64_t kApplicationId = 0x544C5052;

// PRAGMA page_size of new databases: what measured best for payloads.
inline constexpr int kPageBytes = 16384;

// A new database as a file, compressed with zstd: tables and views, and the rows that every database
// has (lookup tables, import_code, schema_doc). The build makes it of schemas/sql. The window of the
// compression is small, so that unpacking touches little memory.
struct SchemaImage {
  const unsigned char* packed = nullptr;
  std::size_t packed_bytes = 0;
  std::size_t size_bytes = 0;  // unpacked
};
SchemaImage EmbeddedSchema();
// CREATE INDEX, for after the load.
const char* IndexScript();

// Updates a database of the same version that an earlier tlparse wrote: adds the missing tables,
// columns (NULL in existing rows), indexes, and rows of import_code and of lookup tables, and
// replaces views that differ. kNotATrace if a column that may not be NULL is missing.
Result<void> MigrateSchema(Database& database);
// Opens a new database with kBulkLoad: it has all tables and views, and the rows that every database
// has. The file is made, or must be empty. kIo if it cannot be written.
Result<Database> CreateDatabase(const std::string& path);
// The same in memory, to read the schema of this program.
Result<Database> SchemaInMemory();
// record_kind names blocks of 1 << kRecordBlockBits record ids.
inline constexpr int kRecordBlockBits = 6;
// Its rows for all records, unless there are some.
Result<void> FillRecordKinds(Database& database);
// The indexes of a new database.
Result<void> CreateIndexes(Database& database);
// kNotATrace unless tlparse wrote the database, with a version that is known.
Result<void> CheckSchema(Database& database);
// Of SQLite's message that a table or column is not there: the error that CheckIsComplete gives, if
// the database lacks it because an earlier tlparse of the same version wrote it.
std::optional<Error> WhyMissing(Database& database, std::string_view message);
// kNotATrace, with what helps, if the database lacks a table, view or column of this program: an
// earlier tlparse of the same version wrote it. For callers that read all of them.
Result<void> CheckIsComplete(Database& database);

}  // namespace tlparse
