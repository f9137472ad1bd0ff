#include "import/replace.h"

#include <filesystem>

#include "tests/import/import_log_file.h"

using namespace tlparse;  // NOLINT: a test

namespace {

const std::string kOne = RecordText("one"), kTwo = RecordText("two"), kThree = RecordText("three");

}  // namespace

TEST_CASE("The same bytes in the same run change nothing, under another name neither",
          "[replace]") {
  Ingest ingest;
  const std::string log = ingest.Write("a.log", kOne + kTwo);
  REQUIRE(ingest.Run({log}, true));
  const Lines before = ingest.Rows("SELECT id, name, created_at FROM run");
  const auto again = ingest.Run({log, ingest.Write("copy.log", kOne + kTwo)}, true);
  REQUIRE(again);
  CHECK(again->unchanged_count == 2);
  CHECK(again->log_count == 0);
  CHECK(ingest.Rows("SELECT id, name, created_at FROM run") == before);
  CHECK(ingest.Rows("SELECT path FROM log_file") == Lines{log});
}

TEST_CASE("A log that grew replaces its rows; what others share stays", "[replace]") {
  Ingest ingest;
  const std::string a = ingest.Write("a.log", kOne + kTwo);
  const std::string b = ingest.Write("b.log", kTwo + kThree);
  REQUIRE(ingest.Run({a, b}, false));
  ingest.Write("a.log", kOne + kThree + kOne);  // "two" is now in b alone
  const auto grown = ingest.Run({a, b}, true);
  REQUIRE(grown);
  CHECK(grown->unchanged_count == 1);
  CHECK(grown->record_count == 5);
  CHECK(ingest.Rows("SELECT f.path = '" + a +
                    "', p.content FROM record r JOIN log_file f ON f.id = r.log_file_id "
                    "JOIN payload p ON p.hash = r.payload_hash ORDER BY f.path, r.line") ==
        Lines{"1|one", "1|three", "1|one", "0|two", "0|three"});
  CHECK(ingest.Rows("SELECT count(*) FROM payload") == Lines{"3"});
  CHECK(ingest.Rows("PRAGMA foreign_key_check").empty());

  ingest.Write("b.log", kThree);
  REQUIRE(ingest.Run({a, b}, true));
  // Nobody has "two"
  CHECK(ingest.Rows("SELECT content FROM payload ORDER BY content") == Lines{"one", "three"});
  CHECK(ingest.Rows("SELECT count(*), count(DISTINCT id) FROM record") == Lines{"4|4"});
}

TEST_CASE("Another run keeps its rows, even of the same log", "[replace]") {
  Ingest ingest;
  const std::string log = ingest.Write("a.log", kOne);
  REQUIRE(ingest.Run({log}, true, "first"));
  REQUIRE(ingest.Run({log}, true, "second"));
  ingest.Write("a.log", kTwo);
  REQUIRE(ingest.Run({log}, true, "second"));
  CHECK(ingest.Rows("SELECT u.name, p.content FROM record r JOIN log_file f ON f.id = "
                    "r.log_file_id JOIN run u ON u.id = f.run_id "
                    "JOIN payload p ON p.hash = r.payload_hash ORDER BY u.id") ==
        Lines{"first|one", "second|two"});
  CHECK(ingest.Rows("SELECT count(*) FROM payload_row") == Lines{"2"});
}

TEST_CASE("A log that is not in the run has no rows to remove", "[replace]") {
  Ingest ingest;
  REQUIRE(ingest.Run({ingest.Write("a.log", kOne)}, false));
  Database database = OpenOrThrow(ingest.database_path, Database::Mode::kAppend);
  REQUIRE(RemoveLog(database, 1, "b.log"));
  REQUIRE(RemoveLog(database, 2, ingest.directory.path() + "/a.log"));
  CHECK(*database.QueryInt("SELECT count(*) FROM record") == 1);
  REQUIRE(RemoveLog(database, 1, ingest.directory.path() + "/a.log"));
  CHECK(*database.QueryInt(
            "SELECT (SELECT count(*) FROM record_row) + (SELECT count(*) FROM payload_row) + "
            "(SELECT count(*) FROM process) + (SELECT count(*) FROM log_file)") == 0);
}

TEST_CASE("A database of an earlier tlparse learns the codes it does not know", "[replace]") {
  Ingest ingest;
  REQUIRE(ingest.Run({ingest.Write("a.log", kOne)}, false));
  const Lines codes = ingest.Rows("SELECT id, code, advice FROM import_code ORDER BY id");
  REQUIRE(
      OpenOrThrow(ingest.database_path, Database::Mode::kAppend)
          .Execute("DELETE FROM import_code WHERE id NOT IN (SELECT code_id FROM import_log_row)"));
  CHECK(ingest.Rows("SELECT id, code, advice FROM import_code ORDER BY id") != codes);
  REQUIRE(ingest.Run({ingest.Write("b.log", kTwo)}, true));
  CHECK(ingest.Rows("SELECT id, code, advice FROM import_code ORDER BY id") == codes);
}

TEST_CASE("A database of an earlier tlparse gets what of the schema it lacks", "[replace]") {
  Ingest ingest;
  REQUIRE(ingest.Run({ingest.Write("a.log", kOne)}, false));
  const Lines schema = ingest.Rows("SELECT name FROM sqlite_schema ORDER BY name");
  const Lines states = ingest.Rows("SELECT id, name FROM cache_state ORDER BY id");
  REQUIRE_FALSE(states.empty());
  constexpr char kReferences[] =
      "SELECT \"from\", \"table\", \"to\" FROM pragma_foreign_key_list('import_log_row') ORDER BY "
      "1";
  const Lines references = ingest.Rows(kReferences);
  // A column that is added stands last.
  constexpr char kColumns[] = "SELECT name, type FROM pragma_table_info('model_load') ORDER BY 1";
  const Lines columns = ingest.Rows(kColumns);
  REQUIRE(OpenOrThrow(ingest.database_path, Database::Mode::kAppend)
              .Execute("DROP VIEW payload; CREATE VIEW payload AS SELECT 1 AS hash;"
                       "ALTER TABLE model_load DROP COLUMN weight_size_bytes;"
                       "DROP VIEW cache_divergence; DROP VIEW collective_divergence;"
                       "DROP VIEW execution_divergence; DROP VIEW log_damage;"
                       "DROP VIEW import_log; ALTER TABLE import_log_row DROP COLUMN profile_id;"
                       "DROP TABLE trace_loss; DROP INDEX record_by_kind; DROP TABLE cache_state;"
                       "DELETE FROM payload_state WHERE id = 1"));
  CHECK(ingest.Rows(kReferences) != references);
  REQUIRE(ingest.Run({ingest.Write("b.log", kTwo)}, true));
  CHECK(ingest.Rows("SELECT name FROM sqlite_schema ORDER BY name") == schema);
  CHECK(ingest.Rows("SELECT id, name FROM cache_state ORDER BY id") == states);
  CHECK(ingest.Rows("SELECT DISTINCT payload_state FROM record") == Lines{"ok"});
  CHECK(ingest.Rows(kReferences) == references);
  CHECK(ingest.Rows(kColumns) == columns);
  CHECK(ingest.Rows("SELECT content FROM payload ORDER BY content") == Lines{"one", "two"});
}

TEST_CASE("A database that lacks a column that every row needs is refused", "[replace]") {
  Ingest ingest;
  REQUIRE(ingest.Run({ingest.Write("a.log", kOne)}, false));
  REQUIRE(OpenOrThrow(ingest.database_path, Database::Mode::kAppend)
              .Execute("DROP TABLE lost_record;"
                       "CREATE TABLE lost_record(record_id INTEGER PRIMARY KEY) STRICT"));
  const auto refused = ingest.Run({ingest.Write("b.log", kTwo)}, true);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kNotATrace);
  CHECK(refused.error().message.find("lost_record.ordinal") != std::string::npos);
  CHECK(refused.error().message.find("ingest the logs again") != std::string::npos);
}

TEST_CASE("An ingest that fails leaves the database as it was, or none", "[replace]") {
  Ingest ingest;
  const std::string missing = ingest.directory.path() + "/missing.log";
  const std::string noise = ingest.Write("noise.log", "no trace\n");
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(ingest.directory.path()), {});
  };
  for (const bool append : {false, true}) {
    CHECK(ingest.Run({missing}, append).error().code == ErrorCode::kNotFound);
    CHECK(ingest.Run({noise}, append).error().code == ErrorCode::kNotATrace);
    CHECK(files() == 1);  // the noise: no database, no leftovers
  }
  const std::string log = ingest.Write("a.log", kOne);
  REQUIRE(ingest.Run({log}, false));
  for (const bool append : {false, true}) {
    CHECK_FALSE(ingest.Run({log, missing}, append, "other"));
    CHECK_FALSE(ingest.Run({noise}, append, "other"));
    CHECK(ingest.Rows("SELECT name FROM run") == Lines{"run"});
    CHECK(files() == 3);
  }
  ingest.Write("trace.db", "not a database");
  CHECK(ingest.Run({log}, true).error().code == ErrorCode::kNotATrace);
}
