// The whole ingest on any bytes: it succeeds (or says that there is no record), SQLite finds
// nothing wrong with the database, no foreign key points nowhere, every line of the log is in a
// record, in its payload or in import_log, ingesting the same bytes again changes nothing, and a
// log that was ingested half-written and then whole has the rows of the whole one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/input.h"
#include "import/importer.h"
#include "log/payload_index.h"
#include "store/database.h"
#include "tests/fuzz/fuzz_ingest.h"
#include "tests/log/whole_reader.h"

namespace {

using tlparse::Database;
using tlparse::ErrorCode;
using tlparse::ImportSummary;
using tlparse::Result;
using tlparse::fuzz::CheckIntegrity;
using tlparse::fuzz::DatabasePath;
using tlparse::fuzz::Folder;
using tlparse::fuzz::Require;
using tlparse::fuzz::Value;

std::string LogPath() { return Folder() + "/dedicated_log_torch_trace_rank_3.log"; }

void WriteLog(std::string_view bytes) {
  std::ofstream(LogPath(), std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

Result<ImportSummary> Import(bool append) {
  tlparse::ImportOptions options;
  options.database_path = DatabasePath();
  options.run_name = "fuzz";
  options.append = append;
  return tlparse::ImportLogs({{LogPath(), 3, -1}}, {}, options);
}

struct Counts {
  std::int64_t records;
  std::int64_t lines;
  std::int64_t bytes;
};
Counts ReadLog() {
  tlparse::PayloadIndex index(Folder());
  tlparse::ReadShared shared{&index, 1, 42};
  tlparse::WholeReader reader(Value(tlparse::OpenInput(LogPath())), shared);
  tlparse::Window window;
  while (Value(reader.Next(window))) {
  }
  return {reader.record_count(), reader.line_count(), reader.file().bytes_read()};
}

// Lines that the records, their payloads and import_log's texts account for.
std::int64_t CountKeptLines(Database& database) {
  std::int64_t lines = Value(database.QueryInt("SELECT count(*) FROM record")) +
                       Value(database.QueryInt("SELECT sum(line_count) FROM import_log "
                                               "WHERE text IS NOT NULL"));
  auto payloads = Value(database.Prepare(
      "SELECT p.content, count(*) FROM record r JOIN payload p ON p.hash = r.payload_hash "
      "GROUP BY p.hash"));
  while (Value(payloads.Step())) {
    const std::string_view content = payloads.Text(0);
    lines += (1 + std::count(content.begin(), content.end(), '\n')) * payloads.Int(1);
  }
  return lines;
}

void CheckDatabase(Database& database, const Counts& expected) {
  CheckIntegrity(database);
  Require(Value(database.QueryInt("SELECT count(*) FROM record")) == expected.records, "records");
  Require(Value(database.QueryInt("SELECT line_count FROM log_file")) == expected.lines,
          "line_count");
  Require(Value(database.QueryInt("SELECT size_bytes FROM log_file")) == expected.bytes,
          "size_bytes");
  Require(CountKeptLines(database) == expected.lines, "every line is kept once");
}

// Rows of every table that a log owns; content, strings and stacks may outlive their log.
std::map<std::string, std::int64_t> CountRows(Database& database) {
  std::map<std::string, std::int64_t> rows;
  auto tables = Value(database.Prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('run', 'log_file', "
      "'process', 'compile', 'attempt', 'graph', 'record_row', 'payload_row', 'payload_hash_row', "
      "'payload_content_row', 'import_log_row') OR name IN (SELECT m.name FROM sqlite_schema m "
      "JOIN pragma_table_info(m.name) c ON c.name = 'record_id' WHERE m.type = 'table' "
      "AND m.name <> 'content')"));
  while (Value(tables.Step())) {
    const std::string name(tables.Text(0));
    rows[name] = Value(database.QueryInt("SELECT count(*) FROM \"" + name + "\""));
  }
  Require(rows.size() > 20, "the tables are there");
  return rows;
}

Database OpenDatabase() { return Value(Database::Open(DatabasePath(), Database::Mode::kReadOnly)); }

void CheckUnchanged(const Counts& expected) {
  const ImportSummary again = Value(Import(true));
  Require(again.unchanged_count == 1 && again.log_count == 0, "the same bytes change nothing");
  Require(again.record_count == expected.records, "the run keeps its records");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  WriteLog(bytes);
  const Counts expected = ReadLog();
  const auto summary = Import(false);
  if (!summary) {
    Require(summary.error().code == ErrorCode::kNotATrace, summary.error().message);
    Require(expected.records == 0, "a log with records is a trace");
    return 0;
  }
  Require(summary->record_count == expected.records, "the summary counts the reader's records");
  std::map<std::string, std::int64_t> rows;
  {
    auto database = OpenDatabase();
    CheckDatabase(database, expected);
    rows = CountRows(database);
  }
  CheckUnchanged(expected);

  WriteLog(bytes.substr(0, size / 2));
  const bool had_half = Import(false).has_value();
  WriteLog(bytes);
  Require(Value(Import(had_half)).record_count == expected.records, "the log that grew");
  auto database = OpenDatabase();
  CheckDatabase(database, expected);
  const auto grown = CountRows(database);
  for (const auto& [table, count] : rows) {
    Require(grown.at(table) == count, "a log that grew has the rows of the whole one: " + table);
  }
  return 0;
}
