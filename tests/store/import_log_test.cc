#include "store/import_log.h"

#include <set>

#include "tests/catch2.h"
#include "tests/store/scratch_database.h"

using namespace tlparse;  // NOLINT: a test
using namespace std::string_literals;

TEST_CASE("Findings are rows with code, place and text", "[import_log]") {
  ScratchDatabase scratch;
  TableSet tables;
  ImportLog log(tables);
  RowBatch rows(tables);
  log.Begin(1, 5);
  log.Add(rows, 2, {.record_id = 10, .line = 20, .byte_offset = 30}, ImportCode::kForeignLine,
          "a message", "the text\n", 3);
  log.Add(rows, std::nullopt, {.path = "a/b"}, ImportCode::kSkippedFile, "no place");
  log.Add(rows, 2, {}, ImportCode::kBadPayload, "\xff in a message", "a\0b"s);
  scratch.Insert(tables, rows);
  CHECK(scratch.Rows("SELECT id, run_id, log_file_id, record_id, line, byte_offset, severity, "
                     "code, message, text, line_count, path "
                     "FROM import_log ORDER BY id") ==
        Lines{"5|1|2|10|20|30|info|foreign_line|a message|the text\n|3|NULL",
              "6|1|NULL|NULL|NULL|NULL|info|skipped_file|no place|NULL|1|a/b",
              "7|1|2|NULL|NULL|NULL|warning|bad_payload|\xEF\xBF\xBD in a message|a\0b|1|NULL"s});
  CHECK(scratch.Rows("SELECT typeof(text) FROM import_log WHERE text IS NOT NULL ORDER BY id") ==
        Lines{"text", "blob"});
}

TEST_CASE("Every code has a name of its own and advice that is a sentence", "[import_log]") {
  std::set<std::string_view> names;
  for (int code = 1; code < static_cast<int>(ImportCode::kCount); ++code) {
    const ImportCodeInfo& info = Info(static_cast<ImportCode>(code));
    CAPTURE(info.name);
    CHECK(static_cast<int>(info.code) == code);
    CHECK(names.insert(info.name).second);
    CHECK(info.advice.ends_with('.'));
  }
}
