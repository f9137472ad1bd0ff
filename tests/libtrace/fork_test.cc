// Forks while threads hold whatever locks they can: no child may hang, and none may lose a record.
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libtrace/artifacts/graph_execution.h"
#include "libtrace/core/clock.h"
#include "libtrace/core/per_process.h"
#include "libtrace/sink.h"
#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"
#include "tests/libtrace/sanitizer.h"

namespace libtrace {
namespace {

using testing::LoggedRecord;
using testing::LogsIn;
using testing::ParseLog;
using testing::ReadText;
using testing::TemporaryDirectory;

// A child that hangs dies of this; nothing is expected to take anything like it.
constexpr unsigned kHangLimitS = 120;

constexpr int kRecordsPerThread = 10;
constexpr int kThreadsOfChild = 3;

void EmitNumber(int number, size_t payload_size) {
  Emit(
      "number", [&](MetadataWriter& json) { json.Int(number); },
      [&](Payload& payload) { payload.text().assign(payload_size, 'p'); });
}

// Takes the C library's time-zone lock nearly all of the time.
void HoldTimeZoneLock(const std::atomic<bool>& is_done) {
  for (time_t time = 0; !is_done; ++time) {
    tm local{};
    tzset();
    localtime_r(&time, &local);
  }
}

// Exit status of the child. Its first records come from several threads at once.
int EmitInChild() {
  const auto emit = [] {
    for (int i = 0; i < kRecordsPerThread; ++i) EmitNumber(100 + i, 50);
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < kThreadsOfChild; ++t) threads.emplace_back(emit);
  emit();
  for (std::thread& thread : threads) thread.join();
  Stop();  // _exit runs no handlers: the queue must be written before
  return GetStats().lost_record_count == 0 ? 0 : 1;
}

int ForkAndWait(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kHangLimitS);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// Exit status of a process of its own: `quiet_count` forks before anything was emitted, then
// `busy_count` while three threads emit.
int StormProcess(AsyncMode mode, const std::filesystem::path& directory, int quiet_count,
                 int busy_count) {
  Options options;
  options.directory = directory.string();
  options.async = mode;
  options.max_exit_delay = std::chrono::minutes(10);  // however slow the machine is
  options.max_block = std::chrono::minutes(10);
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) threads.emplace_back([&] { HoldTimeZoneLock(is_done); });
  if (!Start(std::move(options))) return 99;
  int failure_count = 0;
  for (int i = 0; i < quiet_count && failure_count == 0; ++i) {
    if (ForkAndWait(EmitInChild) != 0) ++failure_count;
  }
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!is_done) EmitNumber(1, 500);
    });
  }
  for (int i = 0; i < busy_count && failure_count == 0; ++i) {
    if (ForkAndWait(EmitInChild) != 0) ++failure_count;
  }
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  Stop();
  return failure_count;
}

[[maybe_unused]] void StormRound(AsyncMode mode, int quiet_count, int busy_count) {
  const TemporaryDirectory directory;
  // The storm has a process of its own, so that its threads are not those of the test.
  const pid_t storm = fork();
  if (storm == 0) _exit(StormProcess(mode, directory.path(), quiet_count, busy_count));
  int status = 0;
  REQUIRE(waitpid(storm, &status, 0) == storm);
  REQUIRE(status == 0);
  const auto logs = LogsIn(directory.path());
  REQUIRE(logs.size() == static_cast<size_t>(1 + quiet_count + busy_count));
  const std::string storm_pid = std::to_string(storm);
  for (const auto& log : logs) {
    const std::vector<LoggedRecord> records = ParseLog(ReadText(log));
    REQUIRE(records.at(1).IsArtifact("libtrace_version"));
    int number_count = 0;
    for (const LoggedRecord& record : records) {
      if (record.pid() != records[0].pid()) FAIL("records of two processes in " << log);
      if (record.Has("\"number\"")) ++number_count;
    }
    if (records[0].pid() != storm_pid) REQUIRE(number_count == kThreadsOfChild * kRecordsPerThread);
  }
}

// The sanitizers do not support threads that a child starts after a fork among threads: their own
// locks may be held by threads that the child does not have.
#ifndef LIBTRACE_TEST_SANITIZER
TEST_CASE("A storm of forks while threads emit and ask for the local time", "[fork]") {
  for (int round = 0; round < 4; ++round) StormRound(AsyncMode::kOff, 10, 30);
}
TEST_CASE("A storm of forks while threads emit asynchronously and ask for the local time",
          "[fork]") {
  for (int round = 0; round < 4; ++round) StormRound(AsyncMode::kBlock, 10, 30);
}
TEST_CASE("Ten thousand forks while threads emit and ask for the local time", "[fork][.long]") {
  for (int round = 0; round < 125; ++round) {
    StormRound(AsyncMode::kOff, 10, 30);
    StormRound(AsyncMode::kBlock, 10, 30);
  }
}

TEST_CASE("A child of a process with threads never asks for the local time", "[fork]") {
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) threads.emplace_back([&] { HoldTimeZoneLock(is_done); });
  const int64_t now_s = detail::NowNs() / 1'000'000'000;
  const int32_t offset_s = detail::UtcOffsetS(now_s);
  int failure_count = 0;
  for (int i = 0; i < 20 && failure_count == 0; ++i) {
    const int status = ForkAndWait([&] {
      detail::RefreshUtcOffset();
      // A quarter of an hour on, where its parent would ask again; and in a child of the child.
      if (detail::UtcOffsetS(now_s + 900) != offset_s) return 1;
      return ForkAndWait([&] { return detail::UtcOffsetS(now_s + 1800) != offset_s ? 1 : 0; });
    });
    if (status != 0) ++failure_count;
  }
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(failure_count == 0);
}
#endif

TEST_CASE("A child of a process without threads follows the zone", "[fork]") {
  // A process of its own, whose C library has not read the zone yet.
  const int status = ForkAndWait([] {
    setenv("TZ", "America/New_York", 1);
    tzset();
    const int64_t winter_s = 1'767'225'600, summer_s = 1'782'864'000;  // 2026-01-01, 2026-07-01
    detail::UtcOffsetS(winter_s);
    return ForkAndWait([&] {
      const bool is_right =
          detail::UtcOffsetS(winter_s) == -18'000 && detail::UtcOffsetS(summer_s) == -14'400;
      return is_right ? 0 : 1;
    });
  });
  CHECK(status == 0);
}

// Exit status: 0 if every record of all threads was written.
int EmitWhileStarting(const std::string& directory, int thread_count, int record_count) {
  setenv("TORCH_TRACE", directory.c_str(), 1);
  std::atomic<int> arrived{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      while (arrived < t * 500) ++arrived;  // some microseconds apart, as threads come
      for (int i = 0; i < record_count; ++i) EmitNumber(i, 10);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Stats stats = GetStats();
  // Two records are the library's own: libtrace_version and the interned file name.
  const auto expected = static_cast<uint64_t>(thread_count) * static_cast<uint64_t>(record_count);
  return stats.lost_record_count == 0 && stats.record_count == expected + 2 ? 0 : 1;
}

void StartRounds(int round_count, int thread_count, int record_count) {
  for (int round = 0; round < round_count; ++round) {
    const TemporaryDirectory directory;
    // The variable is read at the first record of a process.
    REQUIRE(ForkAndWait([&] {
              alarm(0);
              return EmitWhileStarting(directory.string(), thread_count, record_count);
            }) == 0);
  }
}

TEST_CASE("Threads that emit while one of them starts the trace lose nothing", "[start][threads]") {
  StartRounds(100, 8, 200);
}

TEST_CASE("A hundred starts with 16 threads of 100,000 records lose nothing", "[start][.long]") {
  StartRounds(100, 16, 100'000);
}

TEST_CASE("A trace that replaces another loses nothing", "[start][threads]") {
  const TemporaryDirectory directory;
  constexpr int kThreads = 4, kRecords = 5'000;
  for (const AsyncMode mode : {AsyncMode::kOff, AsyncMode::kBlock}) {
    const TemporaryDirectory round;
    Options options;
    options.directory = round.string();
    options.async = mode;
    options.max_exit_delay = std::chrono::minutes(10);
    options.max_block = std::chrono::minutes(10);
    REQUIRE(Start(options));
    std::vector<std::thread> threads;
    std::atomic<int> running{kThreads};
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kRecords; ++i) EmitNumber(i, 10);
        --running;
      });
    }
    while (running > 0) REQUIRE(Start(options));
    for (std::thread& thread : threads) thread.join();
    Stop();
    int count = 0;
    for (const auto& log : LogsIn(round.path())) {
      for (const LoggedRecord& record : ParseLog(ReadText(log))) {
        if (record.Has("\"number\"")) ++count;
      }
    }
    CHECK(count == kThreads * kRecords);
  }
}

TEST_CASE("A builder that forks leaves its record to the parent", "[fork]") {
  std::atomic<bool> is_in_write{false}, may_go_on{false};
  Options options;
  options.sink = std::make_shared<CallbackSink>([&](std::string_view record) {
    if (record.find("{\"slow\"") == std::string_view::npos) return;
    is_in_write = true;
    while (!may_go_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  REQUIRE(Start(std::move(options)));
  std::thread writing([] { Emit("slow", [](MetadataWriter& json) { json.Int(1); }); });
  while (!is_in_write) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  pid_t child = 0;
  Emit("forks", [&](MetadataWriter& json) {
    json.Int(1);
    child = fork();
    if (child == 0) alarm(kHangLimitS);
    may_go_on = true;
  });
  if (child == 0) _exit(0);
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  writing.join();
  Stop();
}

TEST_CASE("A child counts from 0, before its first record too", "[fork]") {
  Options options;
  options.sink = std::make_shared<MemorySink>();
  REQUIRE(Start(std::move(options)));
  EmitNumber(1, 10);
  GraphExecutionOrder order;
  order.Executed(CompileId::Frame(0));
  const int status = ForkAndWait([&] {
    if (GetStats().record_count != 0) return 1;
    order.Emit();  // what its parent ran is in its parent's log
    if (GetStats().record_count != 0) return 2;
    order.Executed(CompileId::Frame(1));
    order.Emit();
    return GetStats().record_count > 0 ? 0 : 3;
  });
  CHECK(status == 0);
  Stop();
}

TEST_CASE("A child has a lock of its own for what another thread locks", "[fork]") {
  struct Guarded {
    std::mutex mutex;
    int number = 0;
  };
  detail::PerProcess<Guarded> guarded;
  std::atomic<bool> is_locked{false}, is_done{false};
  std::thread holder([&] {
    const std::lock_guard lock(guarded->mutex);
    guarded->number = 7;
    is_locked = true;
    while (!is_done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  while (!is_locked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const int status = ForkAndWait([&] {
    const std::lock_guard lock(guarded->mutex);
    guarded->number += 1;
    return guarded->number == 1 ? 0 : 1;
  });
  is_done = true;
  holder.join();
  CHECK(status == 0);
  CHECK(guarded->number == 7);
}

}  // namespace
}  // namespace libtrace
