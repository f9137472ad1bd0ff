// What every public function costs while tracing is off. bench_libtrace.py prints one row each.
#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

#include "libtrace/artifacts/cache_event.h"
#include "libtrace/artifacts/collective_log.h"
#include "libtrace/artifacts/collective_schedule.h"
#include "libtrace/artifacts/graph_dump.h"
#include "libtrace/artifacts/graph_execution.h"
#include "libtrace/artifacts/measured_runtime.h"
#include "libtrace/artifacts/model_load.h"
#include "libtrace/artifacts/package.h"
#include "libtrace/artifacts/provenance.h"
#include "libtrace/artifacts/run_digest.h"
#include "libtrace/artifacts/runtime_and_tensor_meta.h"
#include "libtrace/chromium_event.h"
#include "libtrace/compile.h"
#include "libtrace/libtrace.h"
#include "libtrace/trace.h"

namespace {

// What the functions are given is made before the loop: the cost is that of the call.
struct Arguments {
  libtrace::CompilationMetrics metrics;
  libtrace::CacheInfo cache_info;
  std::vector<libtrace::IssuedCollective> collectives{1};
  std::vector<std::optional<std::string>> ops{"all_reduce"};
  libtrace::GraphSizes sizes;
  libtrace::GraphExecutionOrder order;
  std::vector<libtrace::MeasuredOp> measured{1};
  std::vector<libtrace::OpRuntime> runtimes{1};
  libtrace::ModelLoad load;
  libtrace::Package package;
  libtrace::Provenance provenance;
  libtrace::Frame frame;
  libtrace::CompileId id = libtrace::CompileId::Frame(1, 2);
};

template <class Call>
void Off(const char* name, Call call) {
  benchmark::RegisterBenchmark((std::string("Off/") + name).c_str(),
                               [call](benchmark::State& state) {
                                 Arguments arguments;
                                 for (auto _ : state) call(arguments);
                               });
}

void RegisterCalls() {
  using A = Arguments;
  using namespace libtrace;
  Off("Emit", [](A&) { Emit("k", [](MetadataWriter& json) { json.Int(1); }); });
  Off("EmitArtifact", [](A&) { EmitArtifact("k", "string", [](Payload& p) { p.text() = "x"; }); });
  Off("EmitJsonArtifact", [](A&) {
    EmitJsonArtifact("k", JsonStyle::kOneLine, [](JsonWriter& json) { json.Int(1); });
  });
  Off("EmitInstant", [](A&) { EmitInstant("k"); });
  Off("TimedSpan", [](A&) { TimedSpan span("k"); });
  Off("CompileScope", [](A& a) { CompileScope scope(a.id); });
  Off("SubgraphScope", [](A&) { SubgraphScope scope("body"); });
  Off("Compile", [](A& a) {
    Compile compile(a.id, {.function = "forward_of_a_model", .file = "some/model.cc", .line = 1});
  });
  Off("Compile from a builder", [](A& a) {
    Compile compile(a.id, [](CompileDescription& description) { description.function = "f"; });
  });
  Off("StackScope", [](A&) { StackScope scope({}); });
  Off("EmitCompilationMetrics", [](A& a) { EmitCompilationMetrics(a.metrics); });
  Off("EmitCacheEvent", [](A& a) { EmitCacheEvent("l", CacheState::kHit, a.cache_info); });
  Off("EmitCollectiveLog", [](A& a) { EmitCollectiveLog(a.collectives); });
  Off("EmitCollectiveSchedule", [](A& a) { EmitCollectiveSchedule(a.ops); });
  Off("EmitGraphDump", [](A&) { EmitGraphDump("n", "cpp", "", "text"); });
  Off("EmitBeforeJointGraph", [](A&) { EmitBeforeJointGraph("text"); });
  Off("EmitOutputGraph", [](A& a) { EmitOutputGraph(a.sizes, "text"); });
  Off("EmitOutputCode", [](A&) { EmitOutputCode("", "code"); });
  Off("GraphExecutionOrder::Executed", [](A& a) { a.order.Executed(a.id, "forward"); });
  Off("EmitMeasuredRuntime", [](A& a) { EmitMeasuredRuntime(a.measured, "cpu"); });
  Off("EmitRuntimeAndTensorMeta", [](A& a) { EmitRuntimeAndTensorMeta(a.runtimes); });
  Off("EmitModelLoad", [](A& a) { EmitModelLoad(a.load); });
  Off("EmitPackage", [](A& a) { EmitPackage(a.package); });
  Off("RunDigest", [](A&) { RunDigest("forward").Output("0", "float32[1]", "abcd").Emit(); });
  Off("Provenance::Emit", [](A& a) { a.provenance.Emit(); });
  Off("libtrace_emit", [](A&) { libtrace_emit(nullptr, "k", "{}", nullptr, 0); });
  Off("libtrace_emit_artifact", [](A&) { libtrace_emit_artifact(nullptr, "k", "json", "1", 1); });
  Off("libtrace_span_begin, _end",
      [](A&) { libtrace_span_end(libtrace_span_begin(nullptr, "k")); });
  Off("libtrace_compile_begin, _end", [](A&) {
    libtrace_compile_end(libtrace_compile_begin(nullptr, 1, 0, "f", "f.c", 3, nullptr, 0));
  });
  Off("libtrace_stack_begin, _end",
      [](A&) { libtrace_stack_end(libtrace_stack_begin(nullptr, 0)); });
}

[[maybe_unused]] const bool g_is_registered = [] {
  RegisterCalls();
  return true;
}();

}  // namespace
