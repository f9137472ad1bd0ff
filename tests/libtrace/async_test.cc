#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "libtrace/sink.h"
#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

using testing::FindRecord;
using testing::LoggedRecord;
using testing::MemoryTrace;
using testing::ParseLog;

// A sink that lets nothing through until it is opened.
class Gate {
 public:
  Options Behind(AsyncMode mode, uint64_t queue_size_bytes) {
    Options options;
    options.async = mode;
    options.queue_size_bytes = queue_size_bytes;
    options.max_block = std::chrono::milliseconds(100);
    options.max_exit_delay = std::chrono::milliseconds(300);
    options.on_error = [this](LossKind kind, const std::string&) {
      const std::lock_guard lock(mutex_);
      reported_.push_back(kind);
    };
    options.sink = std::make_shared<CallbackSink>([this](std::string_view record) {
      std::unique_lock lock(mutex_);
      open_.wait(lock, [this] { return is_open_; });
      text_ += record;
    });
    return options;
  }

  void Open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    open_.notify_all();
  }

  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  std::vector<LossKind> reported() {
    const std::lock_guard lock(mutex_);
    return reported_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable open_;
  bool is_open_ = false;
  std::string text_;
  std::vector<LossKind> reported_;
};

void EmitNumbers(int count) {
  for (int i = 0; i < count; ++i) {
    Emit(
        "number", [&](MetadataWriter& json) { json.Int(i); },
        [](Payload& payload) { payload.text().assign(1000, 'p'); });
  }
}

uint64_t Lost(LossKind kind) { return GetStats().lost_by_kind[static_cast<size_t>(kind)]; }

TEST_CASE("A full queue drops, and the log says what", "[async]") {
  Gate gate;
  REQUIRE(Start(gate.Behind(AsyncMode::kDrop, 50'000)));
  EmitNumbers(500);
  const uint64_t dropped = Lost(LossKind::kQueueFull);
  CHECK(dropped > 400);
  gate.Open();
  REQUIRE(Flush());
  EmitNumbers(1);
  Stop();
  const std::vector<LoggedRecord> records = ParseLog(gate.text());
  uint64_t written = 0, logged = 0;
  for (const LoggedRecord& record : records) {
    written += record.Has("{\"number\"") ? 1 : 0;
    const size_t at = record.payload.find("\"number\": ");
    if (record.IsArtifact("libtrace_loss") && at != std::string::npos) {
      logged += std::stoul(record.payload.substr(at + 10));
    }
  }
  CHECK(written + dropped == 501);
  CHECK(logged == dropped);
  CHECK(gate.reported() == std::vector<LossKind>{LossKind::kQueueFull});
}

TEST_CASE("A blocking queue waits for room and loses nothing", "[async]") {
  Gate gate;
  Options options = gate.Behind(AsyncMode::kBlock, 50'000);
  options.max_block = std::chrono::seconds(20);
  REQUIRE(Start(std::move(options)));
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gate.Open();
  });
  EmitNumbers(500);
  opener.join();
  Stop();
  CHECK(GetStats().lost_record_count == 0);
  CHECK(ParseLog(gate.text()).size() == 502);
}

TEST_CASE("A blocking queue does not block for ever, and only once", "[async]") {
  Gate gate;
  REQUIRE(Start(gate.Behind(AsyncMode::kBlock, 50'000)));
  const auto start = std::chrono::steady_clock::now();
  EmitNumbers(100'000);  // if each of them waited, hours would pass: ctest's limit ends the test
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(90));
  CHECK(Lost(LossKind::kQueueFull) > 99'000);
  gate.Open();
  Stop();
}

TEST_CASE("What waits for room is written when the trace ends or is replaced", "[async]") {
  for (const bool is_replaced : {false, true}) {
    Gate gate;
    Options options = gate.Behind(AsyncMode::kBlock, 5'000);
    options.max_block = options.max_exit_delay = std::chrono::minutes(5);
    REQUIRE(Start(std::move(options)));
    std::atomic<int> begun_count{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        ++begun_count;
        EmitNumbers(3);
      });
    }
    while (begun_count < 8) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // they wait for room now
    Options next;
    const auto sink = std::make_shared<MemorySink>();
    next.sink = sink;
    std::thread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      gate.Open();
    });
    if (is_replaced) {
      REQUIRE(Start(std::move(next)));
    } else {
      Stop();
    }
    opener.join();
    for (std::thread& thread : threads) thread.join();
    CHECK(Lost(LossKind::kQueueFull) == 0);
    Stop();
    int count = 0;
    for (const std::string& text : {gate.text(), sink->text()}) {
      for (const LoggedRecord& record : ParseLog(text)) count += record.Has("{\"number\"") ? 1 : 0;
    }
    if (is_replaced) CHECK(count == 24);  // after Stop() what a thread emits next is not traced
  }
}

TEST_CASE("Stop gives up on a sink that hangs", "[async]") {
  Gate& gate = *new Gate;  // the write that hangs uses it whenever it comes back
  REQUIRE(Start(gate.Behind(AsyncMode::kDrop, 1'000'000)));
  EmitNumbers(100);
  Stop();  // without giving up it would wait for ever: ctest's limit ends the test
  CHECK(Lost(LossKind::kNotWrittenAtExit) == 100);
  gate.Open();
}

TEST_CASE("Records keep their order and their time", "[async]") {
  Options options;
  options.async = AsyncMode::kBlock;
  MemoryTrace trace(std::move(options));
  EmitNumbers(2000);
  const std::vector<LoggedRecord> records = trace.records();
  int next = 0;
  std::string last_prefix;
  for (const LoggedRecord& record : records) {
    if (!record.Has("{\"number\"")) continue;
    CHECK(record.Has("{\"number\": " + std::to_string(next++) + ","));
    CHECK(record.prefix.substr(0, 21) >=
          last_prefix.substr(0, std::min<size_t>(21, last_prefix.size())));
    last_prefix = record.prefix;
  }
  CHECK(next == 2000);
}

TEST_CASE("A record larger than the queue goes through when it is empty", "[async]") {
  Options options;
  options.async = AsyncMode::kDrop;
  options.queue_size_bytes = 1000;
  MemoryTrace trace(std::move(options));
  const std::string large(5'000'000, 'x');
  EmitArtifact("large", "string", [&](Payload& payload) { payload.Borrow(large); });
  CHECK(FindRecord(trace.records(), "\"large\"")->payload == large);
  // A header that fits in no ordinary chunk.
  Emit("wide", [&](MetadataWriter& json) { json.String(large); });
  CHECK(FindRecord(trace.records(), "{\"wide\"")->envelope.size() > large.size());
}

}  // namespace
}  // namespace libtrace
