#include "libtrace/trace.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <regex>
#include <stdexcept>
#include <thread>

#include "libtrace/chromium_event.h"
#include "libtrace/compile.h"
#include "libtrace/scope.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

using testing::FindRecord;
using testing::LoggedRecord;
using testing::MemoryTrace;

void EmitSimple(std::string_view key) {
  Emit(key, [](MetadataWriter& json) { json.BeginObject().EndObject(); });
}

TEST_CASE("Nothing is built when tracing is off", "[trace]") {
  Stop();
  bool was_built = false;
  Emit("never", [&](MetadataWriter&) { was_built = true; });
  EmitArtifact("never", "string", [&](Payload&) { was_built = true; });
  EmitInstant("never", [&](JsonWriter&) { was_built = true; });
  CHECK_FALSE(was_built);
  CHECK_FALSE(IsEnabled());
}

TEST_CASE("A record has the prefix of its call site and the members in order", "[trace]") {
  MemoryTrace trace;
  SetRank(7);
  const CompileScope scope(CompileId{1, 2, 3});
  const SubgraphScope subgraph("body_0");
  Emit(
      "my_key", [](MetadataWriter& json) { json.BeginObject().Field("a", 1).EndObject(); },
      [](Payload& payload) { payload.text() = "p"; });
  const int line = __LINE__ - 3;
  const LoggedRecord record = trace.records().at(0);
  CHECK(record.envelope ==
        R"({"my_key": {"a": 1}, "rank": 7, "compiled_autograd_id": 1, "frame_id": 2, )"
        R"("frame_compile_id": 3, "attempt": 0, "subgraph_name": "body_0", )"
        R"("has_payload": "83878c91171338902e0fe0fb97a8c47a"})");
  CHECK(record.pid() == std::to_string(getpid()));
  CHECK(record.prefix.find("trace_test.cc:" + std::to_string(line) + "] ") != std::string::npos);
}

TEST_CASE("What a thread keeps of a site and a compile follows every change", "[trace]") {
  // The same memory for every name, as a caller in another language may do.
  char file[] = "a.cc";
  char key[] = "key_a";
  const CallSite site{file, "f", 7};
  const auto emit = [&] {
    Emit(
        std::string_view(key), [](MetadataWriter&) {}, {}, site);
  };
  std::vector<std::string> seen;
  const auto take = [&](MemoryTrace& trace) {
    for (const LoggedRecord& record : trace.records()) {
      if (record.Has("\"key_"))
        seen.push_back(record.prefix.substr(record.prefix.rfind(' ', record.prefix.size() - 2)) +
                       record.envelope);
    }
  };
  const std::string ids = R"("frame_id": 4, "frame_compile_id": )";
  {
    MemoryTrace trace;
    CompileScope scope(CompileId::Frame(4));
    emit();
    emit();
    key[4] = 'b';
    emit();
    file[0] = 'b';
    emit();
    scope.Restart();
    emit();
    SetRank(1);
    emit();
    const CompileScope inner(CompileId::Frame(4, 1));
    emit();
    take(trace);
  }
  {
    Options options;
    options.source_root = "b";
    MemoryTrace trace(options);
    const CompileScope scope(CompileId::Frame(4, 1));
    emit();
    take(trace);
  }
  CHECK(seen == std::vector<std::string>{
                    R"( a.cc:7] {"key_a": {}, )" + ids + R"(0, "attempt": 0})",
                    R"( a.cc:7] {"key_a": {}, )" + ids + R"(0, "attempt": 0})",
                    R"( a.cc:7] {"key_b": {}, )" + ids + R"(0, "attempt": 0})",
                    R"( b.cc:7] {"key_b": {}, )" + ids + R"(0, "attempt": 0})",
                    R"( b.cc:7] {"key_b": {}, )" + ids + R"(0, "attempt": 1})",
                    R"( b.cc:7] {"key_b": {}, "rank": 1, )" + ids + R"(0, "attempt": 1})",
                    R"( b.cc:7] {"key_b": {}, "rank": 1, )" + ids + R"(1, "attempt": 0})",
                    R"( .cc:7] {"key_b": {}, )" + ids + R"(1, "attempt": 0})"});
}

/// time() reads a clock that only moves with the kernel's tick: it can be behind the record's.
time_t Now() { return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()); }

TEST_CASE("The prefix has local time", "[trace]") {
  for (const char* zone : {"Asia/Kathmandu", "America/New_York", "UTC"}) {
    setenv("TZ", zone, 1);
    tzset();
    MemoryTrace trace;
    const time_t before = Now();
    EmitSimple("tick");
    const time_t after = Now();
    const std::string prefix = trace.records().at(0).prefix;
    char texts[2][32];
    tm local{};
    strftime(texts[0], sizeof texts[0], "V%m%d %H:%M:%S.", localtime_r(&before, &local));
    strftime(texts[1], sizeof texts[1], "V%m%d %H:%M:%S.", localtime_r(&after, &local));
    INFO(zone << " " << prefix);
    CHECK((prefix.starts_with(texts[0]) || prefix.starts_with(texts[1])));
  }
  unsetenv("TZ");
  tzset();
}

TEST_CASE("The second record of a trace identifies the writer, without context", "[trace]") {
  MemoryTrace trace;
  SetRank(1);
  EmitSimple("first");
  EmitSimple("third");
  const std::vector<LoggedRecord> records = trace.records();
  CHECK(records.at(0).Has("\"str\""));  // the call site of `first` is interned before it
  CHECK(records.at(1).IsArtifact("libtrace_version"));
  CHECK_FALSE(records.at(1).Has("rank"));
  CHECK(records.at(2).Has("\"first\""));
}

TEST_CASE("Outside a compile a record has a stack or nothing, never ids", "[trace]") {
  MemoryTrace trace;
  EmitSimple("with_site");
  EmitOptions unexpecting;
  unexpecting.expects_compile_id = false;
  Emit(
      "plain", [](MetadataWriter&) {}, unexpecting);
  EmitOptions bare;
  bare.with_context = false;
  SetRank(3);
  Emit(
      "bare", [](MetadataWriter&) {}, bare);
  EmitOptions explicit_id;
  explicit_id.compile_id = CompileId::Frame(4, 5);
  Emit(
      "explicit", [](MetadataWriter&) {}, explicit_id);
  const Stack frames = {{"host.py", 3, "main", "step(x)"},
                        {"", std::nullopt, "inner", std::nullopt}};
  {
    const StackScope scope(frames);
    EmitSimple("hosted");
  }
  const std::vector<LoggedRecord> records = trace.records();
  CHECK(FindRecord(records, "with_site")->Has("\"stack\": [{\"line\": "));
  CHECK_FALSE(FindRecord(records, "with_site")->Has("frame_id"));
  CHECK(FindRecord(records, "plain")->envelope == R"({"plain": {}})");
  CHECK(FindRecord(records, "bare")->envelope == R"({"bare": {}})");
  CHECK(FindRecord(records, "explicit")->envelope ==
        R"({"explicit": {}, "rank": 3, "frame_id": 4, "frame_compile_id": 5})");
  const std::regex hosted(
      R"re(\{"hosted": \{\}, "rank": 3, "stack": \[\{"line": 3, "name": "main", "filename": \d+, )re"
      R"re("loc": "step\(x\)"\}, \{"line": 0, "name": "inner", "filename": \d+\}\]\})re");
  CHECK(std::regex_match(FindRecord(records, "hosted")->envelope, hosted));
}

TEST_CASE("A C++ stack names this program's functions", "[trace]") {
  Options options;
  options.stacks = StackMode::kBacktrace;
  MemoryTrace trace(std::move(options));
  EmitSimple("deep");
  const LoggedRecord record = *FindRecord(trace.records(), "\"deep\"");
  CHECK(record.Has("libtrace_core_test"));  // symbol or <object>+offset
  CHECK(CaptureStack(4).size() <= 4);
  CHECK(CaptureStack(0).empty());
}

TEST_CASE("Scopes nest, restart and end in reverse order", "[scope]") {
  Frame frame;
  CHECK(CurrentContext().compile_id.empty());
  {
    const CompileScope autograd(CompileId::CompiledAutograd(9));
    CompileScope outer(frame);
    CHECK(ToString(CurrentContext().compile_id) == "!9/" + std::to_string(frame.id()) + "/0");
    outer.Restart();
    CHECK(CurrentContext().attempt == 1);
    {
      const CompileScope inner(frame);
      CHECK(CurrentContext().attempt == 0);
      CHECK(CurrentContext().compile_id.frame_compile_id == 1u);
    }
    CHECK(CurrentContext().attempt == 1);
  }
  CHECK(CurrentContext().compile_id.empty());
}

TEST_CASE("A context can be moved to another thread", "[scope]") {
  MemoryTrace trace;
  const CompileScope scope(CompileId::Frame(50, 2));
  std::thread([context = CurrentContext()] {
    CHECK(CurrentContext().compile_id.empty());
    const ContextScope moved(context);
    EmitSimple("elsewhere");
  }).join();
  CHECK(trace.records().at(0).Has("\"frame_id\": 50, \"frame_compile_id\": 2"));
}

TEST_CASE("A builder that throws costs its record only", "[trace]") {
  MemoryTrace trace;
  Emit("bad", [](MetadataWriter&) { throw std::runtime_error("no"); });
  Emit(
      "bad", [](MetadataWriter&) {}, [](Payload&) { throw 1; });
  EmitSimple("good");
  const std::vector<LoggedRecord> records = trace.records();
  CHECK_FALSE(FindRecord(records, "\"bad\": {}"));
  CHECK(FindRecord(records, "\"good\""));
  const std::optional<LoggedRecord> loss = FindRecord(records, "libtrace_loss");
  REQUIRE(loss);
  CHECK(loss->payload.find("\"kind\": \"builder_failed\",\n\"record_count\": 2") !=
        std::string::npos);
  CHECK(loss->payload.find("\"bad\": 2") != std::string::npos);
  CHECK(trace.errors().size() == 1);  // once, however many
  CHECK(GetStats().lost_record_count == 2);
}

TEST_CASE("A builder may emit records of its own", "[trace]") {
  MemoryTrace trace;
  Emit("outer", [](MetadataWriter& json) {
    EmitSimple("inner");
    json.String("done");
  });
  const std::vector<LoggedRecord> records = trace.records();
  CHECK(FindRecord(records, "\"inner\""));
  CHECK(FindRecord(records, R"({"outer": "done")"));
}

TEST_CASE("Reserved and empty record keys are refused", "[trace]") {
  MemoryTrace trace;
  for (const char* key : {"rank", "", "str", "stack"}) EmitSimple(key);
  EmitSimple("fine");
  CHECK(GetStats().lost_by_kind[static_cast<size_t>(LossKind::kBadRecordKey)] == 4);
  CHECK(FindRecord(trace.records(), "\"fine\""));
}

TEST_CASE("Payloads keep every byte, except what is not UTF-8", "[trace]") {
  MemoryTrace trace;
  const std::string odd("a\r\n\tb\0\v\f\xE2\x80\xA8\n\n", 14);
  EmitArtifact("odd", "string", [&](Payload& payload) { payload.Borrow(odd); });
  std::string lines(100'000, '\n');  // more lines than any guess
  lines += "0123456789abcde\n0123456789abcdef\nend";
  EmitArtifact("lines", "string", [&](Payload& payload) { payload.Borrow(lines); });
  EmitArtifact("accents", "string", [](Payload& payload) {
    payload.text() = "0123456789abcdef\n\xC3\xA9 and more than a block of text \xC3\xA9\n";
  });
  EmitArtifact("broken", "string", [](Payload& payload) { payload.text() = "x\xFFy\xE2\x82"; });
  EmitArtifact("empty", "string", [](Payload& payload) { payload.text(); });
  EmitArtifact("none", "string", [](Payload&) {});
  const std::vector<LoggedRecord> records = trace.records();
  CHECK(FindRecord(records, "\"odd\"")->payload == odd);
  CHECK(FindRecord(records, "\"lines\"")->payload == lines);
  CHECK(FindRecord(records, "\"accents\"")->payload ==
        "0123456789abcdef\n\xC3\xA9 and more than a block of text \xC3\xA9\n");
  CHECK(FindRecord(records, "\"broken\"")->payload == "x\xEF\xBF\xBDy\xEF\xBF\xBD");
  CHECK(FindRecord(records, "\"empty\"")->has_payload);
  CHECK_FALSE(FindRecord(records, "\"none\"")->has_payload);
  CHECK(GetStats().repaired_payload_count == 1);
}

TEST_CASE("A payload beyond the limit is left out and counted", "[trace]") {
  Options options;
  options.max_payload_size_bytes = 100;
  MemoryTrace trace(std::move(options));
  EmitArtifact("large", "string", [](Payload& payload) { payload.text().assign(101, 'x'); });
  EmitArtifact("fits", "string", [](Payload& payload) { payload.text().assign(100, 'x'); });
  const std::vector<LoggedRecord> records = trace.records();
  CHECK_FALSE(FindRecord(records, "\"large\"")->has_payload);
  CHECK(FindRecord(records, "\"fits\"")->has_payload);
  CHECK(FindRecord(records, "libtrace_loss")->payload.find("payload_too_large") !=
        std::string::npos);
}

TEST_CASE("Compile tells the whole story of a compile", "[compile]") {
  MemoryTrace trace;
  Frame frame;
  { const Compile first(frame, {.function = "f", .file = "m.cc", .line = 3}); }
  {
    CompileDescription description{.function = "f", .file = "m.cc", .line = 3};
    description.recompile_reasons = {"0/0: size mismatch"};
    Compile second(frame, std::move(description));
    second.Restart("graph break");
    EmitSimple("after_restart");
    second.Fail("Unsupported", "no such op", "user.cc", 9);
    second.Fail("Later", "is ignored");
  }
  const std::vector<LoggedRecord> records = trace.records();
  CHECK(FindRecord(records, "recompile_reasons")->payload == "[\n\"0/0: size mismatch\"\n]");
  CHECK(FindRecord(records, "after_restart")->Has("\"attempt\": 1"));
  const auto& metrics = records.back();
  CHECK(metrics.envelope.starts_with("{\"compilation_metrics\": {\"compile_id\": \"" +
                                     std::to_string(frame.id()) + "/1\""));
  CHECK(metrics.Has(R"("fail_type": "Unsupported", "fail_reason": "no such op")"));
  CHECK(metrics.Has(R"("restart_reasons": ["graph break"])"));
  CHECK(metrics.Has(R"("recompile_reason": "0/0: size mismatch")"));
  CHECK(metrics.Has("\"attempt\": 1"));
}

TEST_CASE("A span writes B and E with what was added", "[chromium_event]") {
  MemoryTrace trace;
  {
    const CompileScope scope(CompileId::Frame(60));
    TimedSpan span("lower", "Lower");
    span.Arg("nodes", 3);
    span.Arg("names", std::vector<std::string>{"a", "b"});
  }
  const std::vector<LoggedRecord> records = trace.records();
  const auto has = [](const LoggedRecord& record, std::string_view text) {
    return record.payload.find(text) != std::string::npos;
  };
  CHECK(has(records.at(0), "\"ph\": \"B\""));
  CHECK(has(records.at(0), "\"args\": {\n\"fn_name\": \"Lower\",\n\"compile_id\": \"60/0\"\n}"));
  CHECK(has(records.at(2), "\"ph\": \"E\""));
  CHECK(has(records.at(2), "\"nodes\": 3,\n\"names\": [\n\"a\",\n\"b\"\n]"));
  const double now_us = static_cast<double>(std::chrono::duration_cast<std::chrono::microseconds>(
                                                std::chrono::system_clock::now().time_since_epoch())
                                                .count());
  std::smatch ts;
  REQUIRE(std::regex_search(records[2].payload, ts, std::regex(R"re("ts": ([0-9.]+),)re")));
  CHECK(std::abs(std::stod(ts[1]) - now_us) < 10e6);
}

}  // namespace
}  // namespace libtrace
