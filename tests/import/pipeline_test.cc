#include "import/pipeline.h"

#include <new>

#include "rows/core.h"
#include "tests/catch2.h"
#include "tests/log/read_log.h"
#include "tests/store/scratch_database.h"

using namespace tlparse;  // NOLINT: a test

namespace {

// A pipeline into an empty database; files come from memory.
struct LoadOfFiles {
  ScratchDatabase scratch;
  TableSet tables;
  TypingStep typing{tables};
  PayloadIndex index{scratch.directory.path()};
  ReadShared shared{&index, 1, 42};
  std::unique_ptr<BatchWriter> writer;
  Pipeline::Hooks hooks;
  int threads = 3;
  std::vector<Pipeline::Progress> progress;  // without their paths
  std::string last_path;

  LoadOfFiles() {
    auto made = BatchWriter::Make(scratch.database, tables);
    REQUIRE(made);
    writer = std::move(*made);
    RowBatch rows(tables);
    typing.AddInitialRows(rows);
    typing.BeginRun(1);
    REQUIRE(writer->Insert(rows));
    REQUIRE(scratch.database.Execute("INSERT INTO run VALUES (1, 'run', '', '', '')"));
  }
  Result<void> Run(std::vector<PipelineFile> files) {
    hooks.on_progress = [&](const Pipeline::Progress& now) {
      progress.push_back({now.bytes_done, now.records, {}});
      last_path = now.path;
    };
    return Pipeline(typing, *writer, tables, shared, {threads, nullptr})
        .Run(std::move(files), hooks);
  }
  std::int64_t Count(const char* sql) { return *scratch.database.QueryInt(sql); }
};

PipelineFile File(std::string path, std::string text, std::string error = "") {
  PipelineFile file;
  file.info.path = std::move(path);
  file.input = std::make_unique<MemoryInput>(std::move(text), 1 << 20, std::move(error));
  return file;
}

// About `bytes` of a log: many windows.
std::string LargeLog(std::size_t bytes) {
  std::string text;
  for (int record = 0; text.size() < bytes; ++record)
    text += RecordText(std::string(2000, 'x') + std::to_string(record));
  return text;
}

}  // namespace

TEST_CASE("Files become rows in their order", "[pipeline]") {
  LoadOfFiles load;
  std::vector<PipelineFile> files;
  files.push_back(File("b", RecordText("one") + RecordText("two")));
  files.push_back(File("a", ""));
  files.push_back(File("c", RecordText("one")));
  REQUIRE(load.Run(std::move(files)));
  CHECK(load.scratch.Rows("SELECT id, path, record_count, first_record_id, last_record_id FROM "
                          "log_file ORDER BY id") ==
        Lines{"1|b|2|1|2", "2|a|0|NULL|NULL", "3|c|1|3|3"});
  CHECK(load.Count("SELECT count(*) FROM payload_row") == 2);
  CHECK(load.progress.back().records == 3);
  CHECK(load.last_path == "c");
}

TEST_CASE("Progress ascends over windows and files", "[pipeline]") {
  LoadOfFiles load;
  const std::string text = LargeLog(9 << 20);
  std::vector<PipelineFile> files;
  files.push_back(File("a", text));
  files.push_back(File("b", text));
  REQUIRE(load.Run(std::move(files)));
  REQUIRE(load.progress.size() >= 8);
  for (std::size_t index = 1; index < load.progress.size(); ++index) {
    CHECK(load.progress[index].bytes_done >= load.progress[index - 1].bytes_done);
    CHECK(load.progress[index].records >= load.progress[index - 1].records);
  }
  CHECK(load.progress.back().bytes_done == 2 * static_cast<std::int64_t>(text.size()));
  CHECK(load.progress.back().records == load.Count("SELECT count(*) FROM record_row"));
}

TEST_CASE("A file that cannot be opened ends the load with its error", "[pipeline]") {
  LoadOfFiles load;
  std::vector<PipelineFile> files;
  files.push_back(File("a", RecordText("one")));
  files.emplace_back().info.path = load.scratch.directory.path() + "/missing";
  files.push_back(File("c", LargeLog(20 << 20)));
  const Result<void> result = load.Run(std::move(files));
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kNotFound);
  CHECK(result.error().message.find("missing") != std::string::npos);
}

TEST_CASE("Input that breaks is a problem of its file, and the next file is read", "[pipeline]") {
  LoadOfFiles load;
  std::vector<PipelineFile> files;
  files.push_back(File("a", RecordText("one"), "broke here"));
  files.push_back(File("b", RecordText("two")));
  REQUIRE(load.Run(std::move(files)));
  CHECK(load.Count("SELECT count(*) FROM record_row") == 2);
  CHECK(load.scratch.Rows(
            "SELECT log_file_id, message FROM import_log WHERE code = 'damaged_input'") ==
        Lines{"1|broke here"});
}

TEST_CASE("What is written after reading is in the database, and its failure ends the load",
          "[pipeline]") {
  LoadOfFiles load;
  SECTION("rows") {
    load.hooks.after_reading = [&](const auto& write) -> Result<void> {
      for (int id = 1000; id < 1010; ++id) {
        if (!write([&](RowBatch& rows) { rows.Add(TextRow{.id = id, .text = "after reading"}); }))
          return Fail(ErrorCode::kDatabase, "stopped");
      }
      return {};
    };
    std::vector<PipelineFile> files;
    files.push_back(File("a", LargeLog(9 << 20)));
    REQUIRE(load.Run(std::move(files)));
    CHECK(load.Count("SELECT count(*) FROM text_row WHERE text = 'after reading'") == 10);
  }
  SECTION("an error") {
    load.hooks.after_reading = [](const auto&) -> Result<void> {
      return Fail(ErrorCode::kIo, "no room");
    };
    std::vector<PipelineFile> files;
    files.push_back(File("a", RecordText("one")));
    const Result<void> result = load.Run(std::move(files));
    REQUIRE_FALSE(result);
    CHECK(result.error().message == "no room");
  }
  SECTION("want of memory") {
    load.hooks.after_reading = [](const auto&) -> Result<void> { throw std::bad_alloc(); };
    std::vector<PipelineFile> files;
    files.push_back(File("a", LargeLog(9 << 20)));
    const Result<void> result = load.Run(std::move(files));
    REQUIRE_FALSE(result);
    CHECK(result.error().message == "not enough memory for the log's records");
  }
}

TEST_CASE("A database that refuses rows ends the load at once", "[pipeline]") {
  LoadOfFiles load;
  REQUIRE(
      load.scratch.database.Execute("CREATE TRIGGER full AFTER INSERT ON payload_row WHEN "
                                    "new.id > 1500 BEGIN SELECT raise(ABORT, 'disk full'); END"));
  std::vector<PipelineFile> files;
  files.push_back(File("a", LargeLog(60 << 20)));  // more than all windows in flight hold
  const Result<void> result = load.Run(std::move(files));
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kDatabase);
  CHECK(result.error().message.find("disk full") != std::string::npos);
}

TEST_CASE("Rows are the same whatever the number of threads", "[pipeline]") {
  const std::string large = LargeLog(9 << 20);
  const auto rows_with = [&](int threads) {
    LoadOfFiles load;
    load.threads = threads;
    std::vector<PipelineFile> files;
    files.push_back(File("a", large.substr(0, 5 << 20), "broke here"));
    files.push_back(File("b", large));  // begins with the payloads of the first
    files.push_back(File("c", RecordText(std::string(9 << 20, 'y')) + "foreign\n" + large));
    for (int file = 0; file < 20; ++file)
      files.push_back(
          File(std::to_string(file), RecordText("one") + RecordText(std::to_string(file % 7))));
    REQUIRE(load.Run(std::move(files)));
    Lines rows;
    for (const char* sql :
         {"SELECT id, process_id, line, byte_offset, payload_id, payload_state FROM record_row",
          "SELECT id, hash, size_bytes FROM payload_row ORDER BY rowid",
          "SELECT id, code, record_id, line, byte_offset, message FROM import_log",
          "SELECT id, size_bytes, content_hash, first_record_id FROM log_file"}) {
      for (std::string& row : load.scratch.Rows(sql)) rows.push_back(std::move(row));
    }
    return rows;
  };
  const Lines one = rows_with(1);
  CHECK(one.size() > 10'000);
  for (const int threads : {2, 3, 8}) CHECK((rows_with(threads) == one));
}
