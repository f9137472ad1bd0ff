// Options::limits: which records are left out, and what the log says of them.
#include <algorithm>
#include <cstdlib>
#include <thread>

#include "libtrace/chromium_event.h"
#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

using testing::LoggedRecord;
using testing::ParseLog;

// The records of a trace with these limits, those that are written at its end too.
template <class Body>
std::vector<LoggedRecord> RecordsOf(std::vector<RecordLimit> limits, const Body& body) {
  const auto sink = std::make_shared<MemorySink>();
  Options options;
  options.sink = sink;
  options.limits = std::move(limits);
  options.on_error = [](LossKind kind, const std::string&) { CHECK(kind != LossKind::kLimited); };
  REQUIRE(Start(std::move(options)));
  body();
  Stop();
  return ParseLog(sink->text());
}

template <class Is>
long Count(const std::vector<LoggedRecord>& records, const Is& is) {
  return std::count_if(records.begin(), records.end(), is);
}

void EmitCounted(int& built_count) {
  Emit("number", [&](MetadataWriter& json) { json.Int(++built_count); });
}

TEST_CASE("One of ten records of a kind is written and built; the log says how many are not",
          "[limits]") {
  int built_count = 0;
  const std::vector<LoggedRecord> records = RecordsOf({{"number", 0, 10}}, [&] {
    for (int i = 0; i < 95; ++i) {
      EmitCounted(built_count);
      Emit("other", [](MetadataWriter& json) { json.Int(1); });
    }
  });
  CHECK(built_count == 10);
  CHECK(Count(records, [](const LoggedRecord& record) { return record.Has("\"number\": "); }) ==
        10);
  CHECK(Count(records, [](const LoggedRecord& record) { return record.Has("\"other\": "); }) == 95);
  CHECK(GetStats().lost_by_kind[static_cast<size_t>(LossKind::kLimited)] == 85);
  CHECK(GetStats().lost_record_count == 0);
  CHECK(Count(records,
              [](const LoggedRecord& record) { return record.IsArtifact("libtrace_loss"); }) == 1);
  CHECK(records.back().payload.find("\"number\": 85") != std::string::npos);
}

TEST_CASE("Threads share a rate", "[limits]") {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<LoggedRecord> records = RecordsOf({{"notes", 7, 1}}, [] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 1000; ++i)
          EmitArtifact("notes", "string", [](Payload& payload) { payload.text() = "x"; });
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
  const long written =
      Count(records, [](const LoggedRecord& record) { return record.IsArtifact("notes"); });
  CHECK(written >= 7);
  CHECK(written <= 7 * (seconds.count() + 2));
  CHECK(GetStats().lost_by_kind[static_cast<size_t>(LossKind::kLimited)] ==
        static_cast<uint64_t>(4000 - written));
}

TEST_CASE("A span is left out as a whole, its neighbours are not", "[limits]") {
  const std::vector<LoggedRecord> records = RecordsOf({{"request", 0, 3}}, [] {
    for (int i = 0; i < 9; ++i) {
      const TimedSpan request("request");
      const TimedSpan step("step");
    }
  });
  const auto has = [&](std::string_view name, std::string_view phase) {
    return Count(records, [&](const LoggedRecord& record) {
      return record.payload.find(name) != std::string::npos &&
             record.payload.find(phase) != std::string::npos;
    });
  };
  CHECK(has("\"request\"", "\"ph\": \"B\"") == 3);
  CHECK(has("\"request\"", "\"ph\": \"E\"") == 3);
  CHECK(has("\"step\"", "\"ph\": \"E\"") == 9);
}

TEST_CASE("LIBTRACE_LIMITS is read, and what it cannot mean is said", "[limits]") {
  setenv("LIBTRACE_LIMITS", "request=1/50,graph=100/s,=1/2,a=2/3,b=1/0,c,d=x/s,e=0/s", 1);
  const Options options = Options::FromEnvironment();
  unsetenv("LIBTRACE_LIMITS");
  REQUIRE(options.limits.size() == 2);
  CHECK(options.limits[0].kind == "request");
  CHECK(options.limits[0].one_of == 50);
  CHECK(options.limits[1].per_second == 100);
  CHECK(std::count(options.complaints.begin(), options.complaints.end(), ';') == 5);
  CHECK(options.complaints.starts_with("LIBTRACE_LIMITS==1/2 ignored: expected kinds with 100/s"));
}

}  // namespace
}  // namespace libtrace
