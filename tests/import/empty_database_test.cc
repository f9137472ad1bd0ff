// The file image of an empty database is what CreateSchema makes.
#include "import/empty_database.h"

#include "tests/catch2.h"
#include "tests/store/scratch_database.h"

namespace tlparse {
namespace {

Lines RowsOf(Database& database, std::string_view sql) {
  Result<Statement> statement = database.Prepare(sql);
  REQUIRE(statement);
  Lines rows;
  while (*statement->Step()) rows.push_back(statement->OptionalText(0).value_or("NULL"));
  return rows;
}

TEST_CASE("An empty database has the schema and the codes of import_log", "[empty_database]") {
  ScratchDatabase made;
  const std::string path = made.directory.path() + "/image.db";
  REQUIRE(WriteEmptyDatabase(path));
  Database image = OpenOrThrow(path, Database::Mode::kAppend);
  CHECK(RowsOf(image, "PRAGMA integrity_check") == Lines{"ok"});
  for (const char* sql :
       {"SELECT type || name || tbl_name || rootpage || coalesce(sql, '') FROM sqlite_schema",
        "SELECT id || severity || code || advice FROM import_code ORDER BY id",
        "PRAGMA user_version", "PRAGMA application_id", "PRAGMA page_size"}) {
    CAPTURE(sql);
    const Lines rows = RowsOf(image, sql);
    CHECK_FALSE(rows.empty());
    CHECK(rows == RowsOf(made.database, sql));
  }
}

TEST_CASE("Only a new file becomes an empty database", "[empty_database]") {
  const TempDirectory directory;
  const std::string path = directory.path() + "/trace.db";
  REQUIRE(WriteEmptyDatabase(path));
  CHECK(WriteEmptyDatabase(path).error().code == ErrorCode::kIo);
  CHECK(WriteEmptyDatabase(directory.path() + "/missing/trace.db").error().code == ErrorCode::kIo);
}

}  // namespace
}  // namespace tlparse
