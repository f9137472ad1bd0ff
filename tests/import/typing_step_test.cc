#include "import/typing_step.h"

#include "tests/import/import_log_file.h"

using namespace tlparse;  // NOLINT: a test

namespace {
const char* const kFindings =
    "SELECT f.id, i.line, i.code FROM import_log i LEFT JOIN log_file f ON f.id = i.log_file_id "
    "WHERE i.code <> 'time_from_file' ORDER BY i.id";

std::string ArtifactText(std::string_view name) {
  return Header("\"artifact\": {\"name\": \"" + std::string(name) + "\"}") + "\n";
}
}  // namespace

TEST_CASE("What is unknown is reported once per file", "[typing_step]") {
  Ingest ingest;
  const std::string text = ArtifactText("new_one") + ArtifactText("new_one") +
                           ArtifactText("new_two") + Header("\"new_kind\": {}") + "\n" +
                           Header("\"new_kind\": {}") + "\n";
  REQUIRE(ingest.Run({ingest.Write("a.log", text), ingest.Write("b.log", ArtifactText("new_one"))},
                     false));
  CHECK(ingest.Rows(kFindings) == Lines{"1|1|unknown_artifact", "1|3|unknown_artifact",
                                        "1|4|unknown_record_kind", "2|1|unknown_artifact"});
  CHECK(ingest.Rows("SELECT kind, name FROM record ORDER BY id") ==
        Lines{"artifact|new_one", "artifact|new_one", "artifact|new_two", "new_kind|NULL",
              "new_kind|NULL", "artifact|new_one"});
}

TEST_CASE("Interned strings are of one file: the next one does not see them", "[typing_step]") {
  Ingest ingest;
  const std::string frame =
      Header("\"dynamo_start\": {\"stack\": [{\"line\": 1, \"name\": \"f\", \"filename\": 3}]}") +
      "\n";
  REQUIRE(ingest.Run({ingest.Write("a.log", Header("\"str\": [\"x.py\", 3]") + "\n" + frame),
                      ingest.Write("b.log", frame + frame)},
                     false));
  // Once, however often it is used
  CHECK(ingest.Rows(kFindings) == Lines{"2|1|unresolved_string"});
  CHECK(ingest.Rows("SELECT DISTINCT file FROM stack_frame ORDER BY file") ==
        Lines{"<unknown:3>", "x.py"});
}

TEST_CASE("Ids and contents of an existing database go on", "[typing_step]") {
  Ingest ingest;
  const std::string a = ingest.Write("a.log", RecordText("one") + ArtifactText("name"));
  const std::string b =
      ingest.Write("b.log", RecordText("two") + RecordText("one") + ArtifactText("name"));
  REQUIRE(ingest.Run({a}, true, "first"));
  REQUIRE(ingest.Run({b}, true, "second"));
  CHECK(ingest.Rows("SELECT id, process_id, payload_id FROM record ORDER BY id") ==
        Lines{"1|1|1", "2|1|NULL", "3|2|2", "4|2|1", "5|2|NULL"});
  CHECK(ingest.Rows("SELECT count(*), count(DISTINCT text) FROM text_row") ==
        ingest.Rows("SELECT count(*), count(*) FROM text_row"));
  CHECK(ingest.Rows("SELECT count(*), count(DISTINCT id) FROM import_log") ==
        ingest.Rows("SELECT count(*), count(*) FROM import_log"));
}

TEST_CASE("Bytes that are no text are kept as bytes", "[typing_step]") {
  Ingest ingest;
  REQUIRE(ingest.Run(
      {ingest.Write("a.log", RecordText("a\xff"
                                        "b") +
                                 RecordText(std::string("n\0l", 3)) + RecordText("text"))},
      false));
  CHECK(ingest.Rows("SELECT typeof(content), hex(content), size_bytes FROM payload ORDER BY id") ==
        Lines{"blob|61FF62|3", "blob|6E006C|3", "text|74657874|4"});
}

TEST_CASE("The summary says what the run holds", "[typing_step]") {
  Ingest ingest;
  const std::string text = RecordText("one") + "foreign\n" + Header("\"a\": {}, \"b\": {}") + "\n" +
                           Header(HasPayload("x")) + "\n";
  const auto summary = ingest.Run({ingest.Write("a.log", text)}, false);
  REQUIRE(summary);
  CHECK(summary->log_count == 1);
  CHECK(summary->record_count == 3);
  CHECK(summary->size_bytes == static_cast<std::int64_t>(text.size()));
  CHECK(summary->error_count == 1);    // the payload that is missing
  CHECK(summary->warning_count == 1);  // two keys
  CHECK(summary->info_count == 2);     // the foreign line, the year from the file's time
}
