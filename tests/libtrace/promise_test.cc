// Promises that were once not kept: failed compiles, ids of threads, what other readers reject,
// errno.
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <thread>

#include "libtrace/artifacts/cache_event.h"
#include "libtrace/artifacts/model_load.h"
#include "libtrace/artifacts/package.h"
#include "libtrace/artifacts/provenance.h"
#include "libtrace/artifacts/run_digest.h"
#include "libtrace/chromium_event.h"
#include "libtrace/compile.h"
#include "libtrace/libtrace.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

using testing::FindRecord;
using testing::LoggedRecord;
using testing::MemoryTrace;

std::string MetricsOf(MemoryTrace& trace) {
  const auto record = FindRecord(trace.records(), "\"compilation_metrics\"");
  REQUIRE(record);
  return record->envelope;
}

TEST_CASE("A compile left by an exception is a failed compile", "[compile]") {
  MemoryTrace trace;
  Frame frame;
  try {
    const Compile compile(frame, {.function = "throws", .file = "ex.cc", .line = 8});
    throw std::runtime_error("lowering failed");
  } catch (const std::runtime_error&) {
  }
  const std::string metrics = MetricsOf(trace);
  CHECK(metrics.find("\"fail_type\": \"exception\"") != std::string::npos);
  CHECK(metrics.find("\"has_guarded_code\": false") != std::string::npos);
}

TEST_CASE("A compile left by an exception that is passed on has its type", "[compile]") {
  MemoryTrace trace;
  Frame frame;
  try {
    try {
      throw std::runtime_error("lowering failed");
    } catch (...) {
      const Compile compile(frame, {.function = "passes_on"});
      throw;
    }
  } catch (const std::runtime_error& error) {
    CHECK(std::string_view(error.what()) == "lowering failed");
  }
  CHECK(MetricsOf(trace).find("\"fail_type\": \"std::runtime_error\"") != std::string::npos);
  CHECK(std::current_exception() == nullptr);

  MemoryTrace other;
  try {
    try {
      throw std::runtime_error("lowering failed");
    } catch (...) {
      const Compile compile(frame, {.function = "throws_another"});
      throw 1;
    }
  } catch (int) {
  }
  CHECK(MetricsOf(other).find("\"fail_type\": \"exception\"") != std::string::npos);
}

TEST_CASE("Run records type and message of an exception and passes it on", "[compile]") {
  MemoryTrace trace;
  Frame frame;
  const auto compile_it = [&] {
    Compile compile(frame, {.function = "throws", .file = "ex.cc", .line = 8});
    CHECK(compile.Run([] { return 7; }) == 7);
    compile.Run([] { throw std::runtime_error("lowering failed"); });
  };
  CHECK_THROWS_AS(compile_it(), std::runtime_error);
  const std::string metrics = MetricsOf(trace);
  CHECK(metrics.find("\"fail_type\": \"std::runtime_error\"") != std::string::npos);
  CHECK(metrics.find("\"fail_reason\": \"lowering failed\"") != std::string::npos);
}

TEST_CASE("A compile within a destructor that an exception runs is a good one", "[compile]") {
  MemoryTrace trace;
  struct CompilesAtEnd {
    ~CompilesAtEnd() {
      Frame frame;
      const Compile compile(frame, {.function = "cleanup"});
    }
  };
  try {
    const CompilesAtEnd at_end;
    throw 1;
  } catch (int) {
  }
  CHECK(MetricsOf(trace).find("\"fail_type\": null") != std::string::npos);
}

TEST_CASE("A compile without a line has line 0 in its stack", "[compile]") {
  MemoryTrace trace;
  Frame frame;
  { const Compile compile(frame, {.function = "step", .file = "x.cc"}); }
  const auto start = FindRecord(trace.records(), "dynamo_start");
  REQUIRE(start);
  CHECK(start->Has("{\"line\": 0, \"name\": \"step\""));
}

TEST_CASE("Every member of the compilation metrics can be set by its name", "[compile]") {
  MemoryTrace trace;
  CompilationMetrics metrics;
  CHECK(metrics.Set("triton_version", "3.1"));
  CHECK(metrics.Set("joint_graph_pass_time_us", 12));
  CHECK(metrics.Set("triton_kernel_compile_times_us", std::vector<int>{1, 2}));
  CHECK(metrics.SetJson("guard_count", " 5 "));  // also where there is a field
  CHECK_FALSE(metrics.Set("no_such_member", 1));
  CHECK_FALSE(metrics.SetJson("cache_size", "1,"));
  EmitCompilationMetrics(metrics);
  const std::string written = MetricsOf(trace);
  for (const char* part : {R"("triton_version": "3.1")", R"("joint_graph_pass_time_us": 12)",
                           R"("triton_kernel_compile_times_us": [1, 2])", R"("guard_count": 5)",
                           R"("cache_size": null)"}) {
    INFO(part);
    CHECK(written.find(part) != std::string::npos);
  }
}

TEST_CASE("A description is made only when tracing is on", "[compile]") {
  Stop();
  bool was_made = false;
  Frame frame;
  const auto describe = [&](CompileDescription& description) {
    was_made = true;
    description.function = "f";
  };
  {
    Compile compile(frame, describe);
    compile.metrics().graph_op_count = 3;
    CHECK(CurrentContext().compile_id == compile.id());
  }
  CHECK_FALSE(was_made);
  MemoryTrace trace;
  { const Compile compile(frame, describe); }
  CHECK(was_made);
  CHECK(MetricsOf(trace).find("\"co_name\": \"f\"") != std::string::npos);
}

TEST_CASE("What a record is made of is built only when tracing is on", "[emit]") {
  int built_count = 0;
  const auto emit_all = [&] {
    EmitCacheEvent("acme", CacheState::kMiss, [&](CacheInfo& info) {
      ++built_count;
      info.key = "a_key";
    });
    EmitModelLoad([&](ModelLoad& load) {
      ++built_count;
      load.model = "a_model";
    });
    EmitPackage([&](Package& package) {
      ++built_count;
      package.path = "a.pt2";
    });
  };
  Stop();
  emit_all();
  CHECK(built_count == 0);
  MemoryTrace trace;
  emit_all();
  EmitPackage([](Package&) { throw std::runtime_error("no such file"); });
  CHECK(built_count == 3);
  const std::string text = trace.text();
  for (const char* part : {"\"key\": \"a_key\"", "\"model\": \"a_model\"", "\"path\": \"a.pt2\""})
    CHECK(text.find(part) != std::string::npos);
  CHECK(GetStats().lost_by_kind[static_cast<size_t>(LossKind::kBuilderFailed)] == 1);
}

TEST_CASE("A digest or provenance that was begun while tracing was off is not emitted", "[emit]") {
  Stop();
  RunDigest digest("forward");
  Provenance provenance;
  provenance.AddKernelToPost("early:1", "mm");
  MemoryTrace trace;
  digest.Output("0", "float32[1]", "abcd");
  digest.Emit();
  provenance.AddKernelToPost("late:1", "mm");
  provenance.Emit();
  Emit("acme_last", [](MetadataWriter& json) { json.Int(1); });
  CHECK(trace.text().find("run_digest") == std::string::npos);
  CHECK(trace.text().find("late:1") == std::string::npos);
  provenance.Clear();
  provenance.AddKernelToPost("late:1", "mm");
  provenance.Emit();
  RunDigest("forward").Output("0", "float32[1]", "abcd").Emit();
  CHECK(trace.text().find("run_digest") != std::string::npos);
  CHECK(trace.text().find("late:1") != std::string::npos);
}

TEST_CASE("Chromium events carry the ids of their process and thread", "[chromium][threads]") {
  MemoryTrace trace;
  const TimedSpan span("here");
  std::string other_thread;
  std::thread([&] {
    other_thread = "\"tid\": " + std::to_string(gettid()) + "";
    const TimedSpan other("there");
  }).join();
  const std::string pid = "\"pid\": " + std::to_string(getpid());
  int there_count = 0;
  for (const LoggedRecord& record : trace.records()) {
    if (!record.Has("chromium_event")) continue;
    CHECK(record.payload.find(pid) != std::string::npos);
    const bool is_there = record.payload.find("there") != std::string::npos;
    there_count += is_there ? 1 : 0;
    const std::string thread = is_there ? other_thread : "\"tid\": " + std::to_string(gettid());
    CHECK(record.payload.find(thread) != std::string::npos);
  }
  CHECK(there_count == 2);
}

TEST_CASE("An artifact that other readers would fail on is written as string", "[emit]") {
  MemoryTrace trace;
  const auto emit = [](const char* name, const char* encoding, const char* text) {
    EmitArtifact(name, encoding, [&](Payload& payload) { payload.text() = text; });
  };
  emit("good_json", "json", R"({"a": [1, 2.5e3, "\u00e9\n", null, true]})");
  emit("good_string", "string", "a: 1");
  emit("bad_encoding", "yaml", "a: 1");
  emit("bad_json", "json", "a: 1");
  emit("bad_number", "json", "[NaN]");
  emit("no_json", "json", "");
  libtrace_emit_artifact(nullptr, "from_c", "protobuf", "x", 1);
  const auto records = trace.records();
  const auto encoding_of = [&](std::string_view name) -> std::string {
    for (const LoggedRecord& record : records) {
      if (record.IsArtifact(name)) return record.Has("\"encoding\": \"json\"") ? "json" : "string";
    }
    return "";
  };
  CHECK(encoding_of("good_json") == "json");
  CHECK(encoding_of("good_string") == "string");
  for (const char* name : {"bad_encoding", "bad_json", "bad_number", "no_json", "from_c"}) {
    INFO(name);
    CHECK(encoding_of(name) == "string");
  }
  CHECK(GetStats().lost_by_kind[static_cast<size_t>(LossKind::kBadEncoding)] == 5);
  CHECK(GetStats().lost_record_count == 0);
  REQUIRE(trace.errors().size() == 1);
  CHECK(trace.errors()[0].find("bad_encoding: record `bad_encoding` (") == 0);
  CHECK(trace.errors()[0].find("promise_test.cc:") != std::string::npos);
}

TEST_CASE("A record of PyTorch's kind without the members that its readers need is refused",
          "[emit]") {
  MemoryTrace trace;
  const auto emit = [](std::string_view key, std::string_view json) {
    Emit(key, [&](MetadataWriter& writer) { writer.Json(json); });
  };
  emit("graph_dump", "{}");
  emit("graph_dump", "[1]");
  emit("artifact", R"({"name": "x", "encoding": "yaml"})");
  emit("artifact", R"({"name": "x"})");
  emit("aot_forward_graph", "\"text\"");
  CHECK(trace.records().empty());
  CHECK(GetStats().lost_by_kind[static_cast<size_t>(LossKind::kBadRecordKey)] == 5);
  emit("graph_dump", R"({"name": "x", "deep": {"a": [{}]}})");
  emit("aot_forward_graph", "{}");
  emit("acme_any", "[1]");
  CHECK(FindRecord(trace.records(), "\"graph_dump\""));
  CHECK(FindRecord(trace.records(), "aot_forward_graph"));
  CHECK(FindRecord(trace.records(), "acme_any"));
}

TEST_CASE("errno survives an emission that fails", "[emit]") {
  Options options;
  options.directory = "/proc/none/trace";
  options.on_error = [](LossKind, const std::string&) { errno = EPERM; };
  errno = EXDEV;
  REQUIRE(Start(std::move(options)));
  CHECK(errno == EXDEV);
  EmitInstant("lost");
  CHECK(errno == EXDEV);
  Stop();
  CHECK(errno == EXDEV);
  CHECK(GetStats().lost_record_count > 0);
}

TEST_CASE("Collectives from C have the numbers that their struct has", "[c_api]") {
  MemoryTrace trace;
  libtrace_collective issued{};
  issued.struct_size = sizeof issued;
  issued.op = "all_reduce";
  issued.process_group = "dp";
  issued.start_us = issued.duration_ns = -1;
  issued.collective_seq_id = 5;
  libtrace_emit_collective_log(nullptr, &issued, 1);
  libtrace_emit_collective_state(nullptr, "dp", 3, 2500);
  issued.struct_size = offsetof(libtrace_collective, collective_seq_id);  // of version 3
  libtrace_emit_collective_log(nullptr, &issued, 1);
  const auto records = trace.records();
  const std::string log = testing::PayloadsOf(records, "libtrace_collective_log");
  CHECK(log.find("\"collective_seq_id\": 5") != std::string::npos);
  CHECK(log.find("collective_seq_id") == log.rfind("collective_seq_id"));
  CHECK(log.find("p2p_seq_id") == std::string::npos);
  const std::string state = testing::PayloadsOf(records, "libtrace_collective_state");
  CHECK(state.find("\"process_group\": \"dp\", \"sequence_number\": 3, \"duration_ns\": 2500.0") !=
        std::string::npos);
}

TEST_CASE("An order of executions from C has the place that began it", "[c_api]") {
  MemoryTrace trace;
  const libtrace_site site{"runner.rs", "run", 7};
  libtrace_execution_order* const order = libtrace_execution_order_new(&site, 1);
  libtrace_execution_order_ran(order, 0, 0, "forward", 1000);
  libtrace_execution_order_free(order);
  int count = 0;
  for (const LoggedRecord& record : trace.records()) {
    if (!record.Has("graph_execution\"")) continue;
    ++count;
    CHECK(record.prefix.find(" runner.rs:7] ") != std::string::npos);
  }
  CHECK(count == 2);
}

TEST_CASE("C functions take null pointers", "[c_api]") {
  libtrace_get_stats(nullptr);
  libtrace_options_init(nullptr);
  CHECK(libtrace_start(nullptr) == 0);
  libtrace_emit(nullptr, nullptr, nullptr, nullptr, 0);
  libtrace_emit_artifact(nullptr, nullptr, nullptr, nullptr, 0);
  libtrace_compile_end(nullptr);
  libtrace_span_end(nullptr);
  libtrace_emit_cache_event(nullptr, nullptr);
  CHECK(libtrace_component_line(nullptr, nullptr, nullptr, 0, nullptr, 10) > 51);
}

}  // namespace
}  // namespace libtrace
