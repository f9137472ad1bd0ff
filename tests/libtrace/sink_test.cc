#include "libtrace/sink.h"

#include <sys/stat.h>

#include <algorithm>
#include <sstream>
#include <thread>
#include <utility>

#include "libtrace/log_format.h"
#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

using testing::FindRecord;
using testing::LoggedRecord;
using testing::LogsIn;
using testing::MemoryTrace;
using testing::ParseLog;
using testing::ReadText;
using testing::TemporaryDirectory;

void EmitNumber(int number, size_t payload_size = 0) {
  Emit(
      "number", [&](MetadataWriter& json) { json.Int(number); },
      [&](Payload& payload) {
        if (payload_size > 0) payload.text().assign(payload_size, 'p');
      });
}

Options InDirectory(const TemporaryDirectory& directory) {
  Options options;
  options.directory = directory.string();
  return options;
}

TEST_CASE("The file is made with the first record, with its parents, mode 0600", "[file_sink]") {
  const TemporaryDirectory directory;
  Options options;
  options.directory = directory.string() + "/a/b";
  options.rank = 5;
  REQUIRE(Start(std::move(options)));
  CHECK_FALSE(std::filesystem::exists(directory.path() / "a"));
  EmitNumber(1);
  const auto logs = LogsIn(directory.path() / "a/b");
  REQUIRE(logs.size() == 1);
  CHECK(LogPath() == logs[0].string());
  CHECK(format::ParseFileName(logs[0].filename().native())->rank == 5u);
  struct stat status {};
  REQUIRE(stat(logs[0].c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  Stop();
}

TEST_CASE("A program that emits nothing leaves nothing behind", "[file_sink]") {
  const TemporaryDirectory directory;
  Options options;
  options.directory = directory.string() + "/a";
  REQUIRE(Start(std::move(options)));
  Stop();
  CHECK_FALSE(std::filesystem::exists(directory.path() / "a"));
}

TEST_CASE("A rank that is set late is in the records, not in the name", "[file_sink]") {
  const TemporaryDirectory directory;
  REQUIRE(Start(InDirectory(directory)));
  EmitNumber(1);
  SetRank(4);
  EmitNumber(2);
  Stop();
  SetRank(std::nullopt);
  const auto logs = LogsIn(directory.path());
  REQUIRE(logs.size() == 1);
  CHECK_FALSE(format::ParseFileName(logs[0].filename().native())->rank);
  const std::vector<LoggedRecord> records = ParseLog(ReadText(logs[0]));
  CHECK_FALSE(FindRecord(records, "\"number\": 1")->Has("rank"));
  CHECK(FindRecord(records, "\"number\": 2")->Has("\"rank\": 4"));
}

TEST_CASE("A rotating trace keeps to its budget, and every file stands alone", "[file_sink]") {
  const TemporaryDirectory directory;
  Options options = InDirectory(directory);
  options.rotate_size_bytes = 20'000;
  options.budget_size_bytes = 70'000;
  REQUIRE(Start(std::move(options)));
  for (int i = 0; i < 200; ++i) EmitNumber(i, 1000);
  Stop();
  const auto logs = LogsIn(directory.path());
  CHECK(logs.size() >= 3);
  uint64_t sum = 0;
  bool has_last = false;
  for (const auto& log : logs) {
    const std::string text = ReadText(log);
    sum += text.size();
    CHECK(text.size() <= 20'000);
    const std::vector<LoggedRecord> records = ParseLog(text);  // checks interned ids per file
    CHECK(records.at(1).IsArtifact("libtrace_version"));
    has_last = has_last || FindRecord(records, "\"number\": 199");
  }
  CHECK(sum <= 70'000);
  CHECK(has_last);
  CHECK(GetStats().file_count > logs.size());
}

// A payload of 20 MB: empty lines, a line longer than a part, characters of several bytes.
std::string LargePayload() {
  std::string text = "\n\n";
  text.append(3'000'000, 'x').append("\n");
  while (text.size() < 20'000'000) text += "a line of the usual length, \u00e4\n\n";
  return text;
}

void EmitBorrowed(std::string_view text) {
  Emit(
      "large", [](MetadataWriter& json) { json.Int(7); },
      [&](Payload& payload) { payload.Borrow(text); });
}

TEST_CASE("A large payload goes into the file in parts, as it would as a whole", "[file_sink]") {
  for (const bool ends_with_line_feed : {true, false}) {
    std::string text = LargePayload();
    if (!ends_with_line_feed) text.pop_back();
    const TemporaryDirectory directory;
    REQUIRE(Start(InDirectory(directory)));
    EmitBorrowed(text);
    EmitNumber(8);
    Stop();
    const std::string written = ReadText(LogsIn(directory.path()).at(0));
    const std::vector<LoggedRecord> records = ParseLog(written);  // checks the hash
    CHECK(FindRecord(records, "\"large\": 7")->payload == text);
    CHECK(FindRecord(records, "\"number\": 8"));
    CHECK(GetStats().size_bytes == written.size());
  }
}

// Takes parts up to a limit, and forgets a record that it did not get whole.
class PartsSink : public MemorySink {
 public:
  explicit PartsSink(uint64_t max_record) : max_record_(max_record) {}
  bool TakesParts() const override { return true; }
  void WritePart(std::string_view part, bool is_last) override {
    largest = std::max(largest, part.size());
    begun_.append(part);
    if (begun_.size() > max_record_) {
      begun_.clear();
      throw std::runtime_error("no room");
    }
    if (is_last) Write(std::exchange(begun_, std::string()));
  }

  size_t largest = 0;

 private:
  uint64_t max_record_;
  std::string begun_;
};

TEST_CASE("A sink that takes parts never gets the whole, and may refuse in the middle", "[sink]") {
  const std::string text = LargePayload();
  const auto whole = std::make_shared<PartsSink>(UINT64_MAX);
  const auto refusing = std::make_shared<PartsSink>(10'000'000);
  for (const auto& sink : {whole, refusing}) {
    Options options;
    options.sink = sink;
    options.on_error = [](LossKind, const std::string&) {};
    REQUIRE(Start(std::move(options)));
    EmitBorrowed(text);
    EmitBorrowed(std::string(9'000'000, '\xff'));  // is repaired: that needs a copy
    EmitNumber(9);
    Stop();
    const std::vector<LoggedRecord> records = ParseLog(sink->text());
    CHECK(sink->largest < 4'000'000);
    CHECK(FindRecord(records, "\"number\": 9"));
    CHECK(FindRecord(records, "\"large\": 7")->payload.size() ==
          (sink == whole ? text.size() : 27'000'000));
    CHECK(GetStats().lost_record_count == (sink == whole ? 0 : 1));
  }
}

TEST_CASE("A callback that throws loses its record and nothing else", "[sink]") {
  std::vector<std::string> seen;
  int calls = 0;
  std::vector<std::string> errors;
  Options options;
  options.sink = std::make_shared<CallbackSink>([&](std::string_view record) {
    if (++calls == 4) throw std::runtime_error("callback is out of order");
    seen.emplace_back(record);
  });
  options.on_error = [&](LossKind kind, const std::string& message) {
    errors.push_back(std::string(ToString(kind)) + ": " + message);
    throw 1;  // may throw, too
  };
  REQUIRE(Start(std::move(options)));
  for (int i = 0; i < 4; ++i) EmitNumber(i);  // str, version, 0, then 1 is lost
  Stop();
  std::string text;
  for (const std::string& record : seen) text += record;
  const std::vector<LoggedRecord> records = ParseLog(text);
  CHECK_FALSE(FindRecord(records, "\"number\": 1,"));
  CHECK(FindRecord(records, "\"number\": 3,"));
  CHECK(FindRecord(records, "libtrace_loss"));
  CHECK(errors == std::vector<std::string>{"write_failed: callback is out of order"});
  CHECK(GetStats().lost_record_count == 1);
}

TEST_CASE("A sink that emits loses what it emits instead of waiting for itself", "[sink]") {
  Options options;
  options.sink = std::make_shared<CallbackSink>([](std::string_view) { EmitNumber(99); });
  REQUIRE(Start(std::move(options)));
  EmitNumber(1);
  Stop();
  CHECK(GetStats().lost_by_kind[static_cast<size_t>(LossKind::kReentrant)] >= 1);
}

TEST_CASE("Threads do not mix records", "[sink]") {
  for (const AsyncMode mode : {AsyncMode::kOff, AsyncMode::kBlock}) {
    Options options;
    options.async = mode;
    MemoryTrace trace(std::move(options));
    constexpr int kThreads = 8, kEach = 500;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < kEach; ++i) EmitNumber(t * kEach + i, static_cast<size_t>(i % 50));
      });
    }
    for (std::thread& thread : threads) thread.join();
    const std::vector<LoggedRecord> records = trace.records();
    int count = 0;
    for (const LoggedRecord& record : records) count += record.Has("\"number\"") ? 1 : 0;
    CHECK(count == kThreads * kEach);
    CHECK(GetStats().lost_record_count == 0);
  }
}

TEST_CASE("Starting and stopping while others emit is safe", "[trace]") {
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!is_done) EmitNumber(1, 20);
    });
  }
  for (int i = 0; i < 30; ++i) {
    Options options;
    options.sink = std::make_shared<MemorySink>();
    options.async = i % 2 == 0 ? AsyncMode::kOff : AsyncMode::kDrop;
    Start(std::move(options));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    SetRank(static_cast<uint32_t>(i));
    Stop();
  }
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  SetRank(std::nullopt);
  CHECK_FALSE(IsEnabled());
}

}  // namespace
}  // namespace libtrace
