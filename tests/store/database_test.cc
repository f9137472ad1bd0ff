#include "store/database.h"

#include <sys/resource.h>

#include <csignal>

#include "log/import_code.h"
#include "tests/catch2.h"
#include "tests/store/scratch_database.h"

using namespace tlparse;  // NOLINT: a test
using namespace std::string_literals;

using Mode = Database::Mode;

TEST_CASE("Only databases of this program and version are opened", "[database]") {
  ScratchDatabase scratch;
  const std::string missing = scratch.directory.path() + "/missing.db";
  const std::string text =
      scratch.directory.Write("text.db", "V1121 08:30:01.000000 7 a.py:1] {}\n");
  const std::string empty = scratch.directory.Write("empty.db", "");
  const std::string other = scratch.directory.path() + "/other.db";
  REQUIRE(OpenOrThrow(other, Mode::kBulkLoad).Execute("CREATE TABLE t(x)"));
  for (const Mode mode : {Mode::kReadOnly, Mode::kAppend}) {
    CHECK(Database::Open(missing, mode).error().code == ErrorCode::kNotFound);
    CHECK(Database::Open(text, mode).error().code == ErrorCode::kNotATrace);
    CHECK(Database::Open(empty, mode).error().code == ErrorCode::kNotATrace);
    CHECK(Database::Open(other, mode).error().code == ErrorCode::kNotATrace);
  }
  REQUIRE(OpenOrThrow(other, Mode::kBulkLoad)
              .Execute("PRAGMA application_id = 0x544C5052; PRAGMA user_version = 7"));
  const auto newer = Database::Open(other, Mode::kReadOnly);
  REQUIRE_FALSE(newer);
  CHECK(newer.error().code == ErrorCode::kNotATrace);
  CHECK(newer.error().message.find("schema version 7") != std::string::npos);
  CHECK(OpenOrThrow(other, Mode::kBulkLoad)
            .QueryInt("SELECT count(*) FROM t"));  // and was left alone
}

TEST_CASE("A new database is whole, and the one in memory is the same", "[database]") {
  ScratchDatabase scratch;
  CHECK((scratch.Rows("PRAGMA integrity_check") == Lines{"ok"}));
  Result<Database> memory = SchemaInMemory();
  REQUIRE(memory);
  for (const char* const sql :
       {"PRAGMA page_count", "SELECT count(*) FROM schema_doc",
        "SELECT count(*) FROM sqlite_schema", "SELECT sum(length(sql)) FROM sqlite_schema"})
    CHECK(*scratch.database.QueryInt(sql) == *memory->QueryInt(sql));
  CHECK(memory->Execute("INSERT INTO text_row(id, text) VALUES (1000000, 'more')"));
}

TEST_CASE("A new database that cannot be written is an error", "[database]") {
  const TempDirectory directory;
  CHECK(CreateDatabase(directory.path() + "/missing/trace.db").error().code == ErrorCode::kIo);
  rlimit old_limit{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1 << 20, old_limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const Result<Database> database = CreateDatabase(directory.path() + "/trace.db");
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  REQUIRE_FALSE(database);
  CHECK(database.error().message.find("File too large") != std::string::npos);
}

TEST_CASE("Values come back as they were bound", "[database]") {
  ScratchDatabase scratch;
  REQUIRE(scratch.database.Execute("CREATE TABLE t(a, b, c, d, e, f)"));
  const std::string blob = "\xff\0z"s;
  auto insert = scratch.database.Prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)");
  REQUIRE(insert);
  insert->Bind(1, INT64_MIN);
  insert->Bind(2, 0.1);
  insert->Bind(3, std::string_view("a\0b", 3));
  insert->BindBlob(4, blob);
  insert->Bind(5, std::optional<std::string_view>());
  insert->Bind(6, std::string_view());
  REQUIRE(insert->Run());
  auto row = scratch.database.Prepare("SELECT * FROM t");
  REQUIRE(*row->Step());
  CHECK(row->Int(0) == INT64_MIN);
  CHECK(row->Real(1) == 0.1);
  CHECK(row->Text(2) == "a\0b"s);
  CHECK(row->ColumnType(3) == SQLITE_BLOB);
  CHECK(row->Text(3) == blob);
  CHECK(row->IsNull(4));
  CHECK_FALSE(row->OptionalInt(4));
  CHECK_FALSE(row->OptionalText(4));
  CHECK(row->ColumnType(5) == SQLITE_TEXT);  // an empty view is an empty string, not NULL
  CHECK(row->ColumnName(2) == "c");
  CHECK_FALSE(*row->Step());
  CHECK(*row->Step());  // reset: starts again
}

TEST_CASE("Errors of SQL are values with SQLite's words", "[database]") {
  ScratchDatabase scratch;
  const auto statement = scratch.database.Prepare("SELECT nothing FROM run");
  REQUIRE_FALSE(statement);
  CHECK(statement.error().code == ErrorCode::kDatabase);
  CHECK(statement.error().message.find("nothing") != std::string::npos);
  CHECK_FALSE(scratch.database.Execute("INSERT INTO run VALUES ('x', 'a', 'b', 'c', 'd')"));
  auto refused = scratch.database.Prepare(
      "INSERT INTO run(id, name, created_at, tool_version) VALUES (1, NULL, 'b', 'c')");
  REQUIRE(refused);
  CHECK(refused->Run().error().message.find("NOT NULL") != std::string::npos);
  CHECK(*scratch.database.QueryInt("SELECT id FROM run") == 0);  // no row
  CHECK(scratch.database.QueryText("SELECT 'a' || char(10)")->size() == 2);
}

TEST_CASE("A reader cannot write, and an addition that is not committed leaves nothing",
          "[database]") {
  ScratchDatabase scratch;
  REQUIRE(scratch.database.Execute("INSERT INTO run VALUES (1, 'a', 'b', 'c', 'd')"));
  scratch.database =
      OpenOrThrow(scratch.directory.path() + "/another.db", Mode::kBulkLoad);  // gives up the lock
  {
    Database append = OpenOrThrow(scratch.path, Mode::kAppend);
    REQUIRE(append.Execute(
        "BEGIN IMMEDIATE; DELETE FROM run; INSERT INTO run VALUES (2, 'b', 'b', 'c', 'd')"));
    CHECK(*append.QueryInt("SELECT id FROM run") == 2);
  }
  Database reader = OpenOrThrow(scratch.path, Mode::kReadOnly);
  CHECK(*reader.QueryInt("SELECT id FROM run") == 1);
  CHECK_FALSE(reader.Execute("DELETE FROM run"));
}

TEST_CASE("Kept statements are used again, reset and without their bindings", "[database]") {
  ScratchDatabase scratch;
  Database& database = scratch.database;
  const std::string sql = "SELECT ?1";
  database.KeepStatements();
  const sqlite3_stmt* first = nullptr;
  {
    auto one = database.Prepare(sql);
    auto two = database.Prepare(sql);  // while the first is used
    REQUIRE(one);
    REQUIRE(two);
    first = one->handle();
    CHECK(first != two->handle());
    one->Bind(1, std::int64_t{7});
    CHECK(*one->Step());  // left in the middle
    CHECK(one->Int(0) == 7);
    *two = std::move(*one);  // ends the use of the second
  }
  {
    auto again = database.Prepare(sql);
    auto other = database.Prepare(sql);
    CHECK((again->handle() == first || other->handle() == first));
    CHECK(*again->Step());
    CHECK(again->IsNull(0));
    CHECK(*other->Step());
    CHECK(other->IsNull(0));
  }
  // Any number of texts, and a table that has changed meanwhile.
  for (int i = 0; i < 1000; ++i) CHECK(*database.QueryInt("SELECT " + std::to_string(i)) == i);
  const std::string all = "SELECT * FROM extra";
  REQUIRE(database.Execute("CREATE TABLE extra (a); INSERT INTO extra VALUES (1)"));
  CHECK(database.Prepare(all)->column_count() == 1);
  REQUIRE(database.Execute("ALTER TABLE extra ADD COLUMN b"));
  auto changed = database.Prepare(all);
  CHECK(*changed->Step());
  CHECK(changed->column_count() == 2);
}

TEST_CASE("The schema's tables are strict and the codes of import_log are there", "[database]") {
  ScratchDatabase scratch;
  CHECK(scratch.Rows("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
                     "AND strict = 0 "
                     "AND name NOT LIKE 'sqlite_%'") == Lines{});
  CHECK(*scratch.database.QueryInt("SELECT count(*) FROM import_code") ==
        static_cast<std::int64_t>(ImportCode::kCount) - 1);
  CHECK(scratch.Rows("SELECT id, severity, code FROM import_code WHERE id IN (1, 21)") ==
        Lines{"1|error|broken_header", "21|info|foreign_line"});
  REQUIRE(CreateIndexes(scratch.database));
  CHECK(*scratch.database.QueryText("PRAGMA integrity_check") == "ok");
}
