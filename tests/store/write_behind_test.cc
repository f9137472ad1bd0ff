#include "store/write_behind.h"

#include <sys/resource.h>

#include <csignal>

#include "tests/catch2.h"
#include "tests/store/scratch_database.h"

using namespace tlparse;  // NOLINT: a test

namespace {

constexpr const char* kFill =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
    "INSERT INTO t SELECT i, randomblob(1000) FROM n";

Database Behind(const std::string& path, StepTimes* times = nullptr) {
  Database database = OpenOrThrow(path, Database::Mode::kBulkLoad);
  REQUIRE(database.Execute("CREATE TABLE t (id INTEGER PRIMARY KEY, bytes)"));
  REQUIRE(database.Execute("BEGIN"));
  REQUIRE(WriteBehind(database, times));
  return database;
}

}  // namespace

TEST_CASE("Pages written behind are read, changed and committed", "[write_behind]") {
  const TempDirectory directory;
  const std::string path = directory.path() + "/t.db";
  StepTimes times;
  std::string sum;
  constexpr const char* kSum =
      "SELECT count(*) || ' ' || sum(length(bytes)) || ' ' || max(hex(bytes)) FROM t";
  {
    Database database = Behind(path, &times);
    REQUIRE(database.Execute(kFill));  // more than the cache and the queue hold
    REQUIRE(database.Execute("UPDATE t SET bytes = randomblob(500) WHERE id % 7 = 0"));
    REQUIRE(database.Execute("CREATE INDEX by_bytes ON t (bytes)"));
    REQUIRE(database.Execute("COMMIT"));
    sum = *database.QueryText(kSum);
    CHECK(sum.starts_with("20000 18571500 "));
  }
  CHECK(times.Seconds(LoadStep::kStoring) > 0);
  sqlite3* plain = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &plain) == SQLITE_OK);
  std::string found;
  const auto note = [](void* to, int, char** values, char**) {
    static_cast<std::string*>(to)->append(values[0]).push_back(';');
    return 0;
  };
  REQUIRE(sqlite3_exec(plain, (std::string(kSum) + "; PRAGMA integrity_check").c_str(), note,
                       &found, nullptr) == SQLITE_OK);
  sqlite3_close(plain);
  CHECK((found == sum + ";ok;"));
}

TEST_CASE("A full disk behind is an error of the statement or of the commit", "[write_behind]") {
  const TempDirectory directory;
  Database database = Behind(directory.path() + "/t.db");
  rlimit old_limit{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{12 << 20, old_limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  Result<void> result = database.Execute(kFill);  // 20 MB
  if (result) result = database.Execute("COMMIT");
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  CHECK_FALSE(result);
}

TEST_CASE("Only a database of a bulk load can be written behind", "[write_behind]") {
  const TempDirectory directory;
  const std::string path = directory.path() + "/t.db";
  REQUIRE(CreateDatabase(path));
  Database database = OpenOrThrow(path, Database::Mode::kAppend);
  const Result<void> result = WriteBehind(database, nullptr);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kInternal);
}
