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
        fmt::format("'{}' has schema version {}, this tlparse knows {}: ingest the logs again",
                    database.path(), version, kSchemaVersion));
  }
  return {};
}

}  // namespace tlparse
