#include "import/typing_step.h"
#include "tests/import/import_log_file.h"

using namespace tlparse;  // NOLINT: a test

TEST_CASE("What a compile's records say is its status", "[file_end]") {
  const auto status = [](auto set) {
    CompileState compile;
    set(compile);
    return std::string(Name(StatusOf(compile)));
  };
  CHECK(status([](CompileState&) {}) == "empty");
  CHECK(status([](CompileState& c) { c.has_start = true; }) == "unfinished");
  CHECK(status([](CompileState& c) { c.ends_inside_event = true; }) == "unfinished");
  CHECK(status([](CompileState& c) { c.has_output_graph = true; }) == "ok");  // export
  CHECK(status([](CompileState& c) { c.has_start = c.has_output_graph = true; }) == "unfinished");
  CHECK(status([](CompileState& c) { c.has_start = c.has_output_graph = c.has_metrics = true; }) ==
        "ok");
  CHECK(status([](CompileState& c) {
          c.has_start = c.has_output_graph = c.has_metrics = true, c.max_attempt = 1;
        }) == "restarted");
  CHECK(status([](CompileState& c) { c.has_start = c.has_metrics = true; }) == "empty");
  CHECK(status([](CompileState& c) { c.has_metrics = true; }) == "skipped");
  CHECK(status([](CompileState& c) {
          c.has_start = c.has_metrics = true, c.has_guarded_code = false;
        }) == "skipped");
  CHECK(status([](CompileState& c) {
          c.has_start = c.has_output_graph = c.has_metrics = c.is_failed = true;
        }) == "failed");
  CHECK(status([](CompileState& c) { c.is_synthetic = c.has_output_graph = true; }) == "ok");
}

TEST_CASE("The file's row says what it was and which records are its own", "[file_end]") {
  Ingest ingest;
  const std::string one = ingest.Write("dedicated_log_torch_trace_rank_7_abcdefgh.log",
                                       RecordText("a") + RecordText("b\nc"));
  const std::string none = ingest.Write("none.log", "\n\nforeign");
  const std::string two = ingest.Write("two.log", RecordText("a"));
  REQUIRE(ingest.Run({one, none, two}, false));
  CHECK(ingest.Rows("SELECT size_bytes > 0, record_count, line_count, compression, name_rank, "
                    "first_record_id, last_record_id "
                    "FROM log_file ORDER BY id") ==
        Lines{"1|2|5|none|7|1|2", "1|0|3|none|NULL|NULL|NULL", "1|1|2|none|NULL|3|3"});
  CHECK(ingest.Rows("SELECT rank, rank_source FROM process ORDER BY id") ==
        Lines{"7|file_name", "NULL|NULL"});
  CHECK(ingest.Rows("SELECT length(content_hash) FROM log_file WHERE content_hash <> ''") ==
        Lines{"32", "32", "32"});
}

TEST_CASE("A compile without a name has that of its frame's earlier compiles", "[file_end]") {
  const auto record = [](int frame, int compile, std::string_view what) {
    return "V1121 08:30:01.000000 7 a.py:1] {" + std::string(what) +
           ", \"frame_id\": " + std::to_string(frame) +
           ", \"frame_compile_id\": " + std::to_string(compile) + ", \"attempt\": 0}\n";
  };
  Ingest ingest;
  REQUIRE(ingest.Run(
      {ingest.Write("a.log",
                    Header("\"str\": [\"f.py\", 0]") + "\n" +
                        record(0, 0,
                               "\"dynamo_start\": {\"stack\": [{\"line\": 3, \"name\": \"fn\", "
                               "\"filename\": 0}]}") +
                        record(0, 1, "\"compilation_metrics\": {}") +
                        record(1, 0, "\"compilation_metrics\": {}"))},
      false));
  CHECK(ingest.Rows("SELECT label, function, file, line FROM compile ORDER BY id") ==
        Lines{"0/0|fn|f.py|3", "0/1|fn|f.py|3", "1/0|NULL|NULL|NULL"});
}

TEST_CASE("The rows of a file's end may be many batches", "[file_end]") {
  constexpr int kProcesses = 3;
  constexpr int kCompiles = 12'000;  // a batch is full at 8,192 rows (RowBatch::IsFull)
  std::string text;
  for (int process = 0; process < kProcesses; ++process) {
    for (int frame = 0; frame < kCompiles; ++frame) {
      text += "V1121 08:30:01.000000 " + std::to_string(7 + process) +
              " a.py:1] {\"compilation_metrics\": {}, \"frame_id\": " + std::to_string(frame) +
              ", \"frame_compile_id\": 0, \"attempt\": 0}\n";
    }
  }
  Ingest ingest;
  REQUIRE(ingest.Run({ingest.Write("a.log", text), ingest.Write("b.log", RecordText("a"))}, false));
  CHECK(ingest.Rows("SELECT p.pid, count(*), count(DISTINCT c.frame_id), min(c.frame_id), "
                    "max(c.frame_id) FROM compile c JOIN "
                    "process p ON p.id = c.process_id WHERE p.log_file_id = 1 GROUP BY p.pid ORDER "
                    "BY p.pid") ==
        Lines{"7|12000|12000|0|11999", "8|12000|12000|0|11999", "9|12000|12000|0|11999"});
  CHECK(ingest.Rows("SELECT record_count FROM log_file ORDER BY id") == Lines{"36000", "1"});
  CHECK(ingest.Rows("PRAGMA integrity_check") == Lines{"ok"});
}
