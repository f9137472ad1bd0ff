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
#include "libtrace/cuda/cuda_activity.h"
#include "libtrace/libtrace.h"
#include "libtrace/trace.h"

namespace {

// What the functions are given is made before the loop: the cost is that of the call.
struct Arguments {
  libtrace::CompilationMetrics metrics;
  libtrace::CacheInfo cache_info;
  std::vector<libtrace::IssuedCollective> collectives{1};
  libtrace::CollectiveState state;
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
  const char* reasons[1] = {"0/0: the size of x changed"};
  libtrace_compile_description description{};
  libtrace_collective collective{};
  libtrace_cache_event cache_event{};
  libtrace_compile* compile = libtrace_compile_begin(nullptr, 1, 0, "f", "f.c", 3, nullptr, 0);
  libtrace_context* context = libtrace_context_take();
  libtrace_provenance* c_provenance = libtrace_provenance_new();
  libtrace_execution_order* c_order = libtrace_execution_order_new(nullptr, 0);

  Arguments() {
    description.struct_size = sizeof description;
    collective.struct_size = sizeof collective;
    cache_event.struct_size = sizeof cache_event;
  }
  ~Arguments() {
    libtrace_execution_order_free(c_order);
    libtrace_provenance_free(c_provenance);
    libtrace_context_free(context);
    libtrace_compile_end(compile);
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
};

template <class Call>
void Off(const char* name, Call call) {
  benchmark::RegisterBenchmark((std::string("Off/") + name).c_str(),
                               [call](benchmark::State& state) {
                                 Arguments arguments;
                                 for (auto _ : state) call(arguments);
                               });
}

using A = Arguments;

void RegisterScopes() {
  using namespace libtrace;
  Off("Emit", [](A&) { Emit("k", [](MetadataWriter& json) { json.Int(1); }); });
  Off("EmitArtifact", [](A&) { EmitArtifact("k", "string", [](Payload& p) { p.text() = "x"; }); });
  Off("EmitJsonArtifact", [](A&) {
    EmitJsonArtifact("k", JsonStyle::kOneLine, [](JsonWriter& json) { json.Int(1); });
  });
  Off("EmitInstant", [](A&) { EmitInstant("k"); });
  Off("TimedSpan, Arg", [](A&) {
    TimedSpan span("k");
    span.Arg("n", 1);
  });
  Off("CompileScope", [](A& a) { CompileScope scope(a.id); });
  Off("ContextScope", [](A&) { ContextScope scope(CurrentContext()); });
  Off("SubgraphScope", [](A&) { SubgraphScope scope("body"); });
  Off("Compile", [](A& a) {
    Compile compile(a.id, {.function = "forward_of_a_model", .file = "some/model.cc", .line = 1});
  });
  Off("Compile from a builder", [](A& a) {
    Compile compile(a.id, [](CompileDescription& description) { description.function = "f"; });
  });
  Off("Compile, Arg, metrics, Run, Restart, Fail", [](A& a) {
    Compile compile(a.id, {.function = "forward_of_a_model"});
    compile.Arg("n", 1);
    compile.metrics().graph_op_count = 3;
    compile.Run([] {});
    compile.Restart("a graph break");
    compile.Fail("Unsupported", "no kernel");
  });
  Off("StackScope", [](A&) { StackScope scope({}); });
  Off("CudaActivity, Emit", [](A&) {
    CudaActivity activity;
    activity.Emit();
  });
  Off("CudaLaunchScope", [](A&) { CudaLaunchScope scope("aten::mm", nullptr); });
}

void RegisterQuestions() {
  using namespace libtrace;
  Off("IsEnabled", [](A&) { benchmark::DoNotOptimize(IsEnabled()); });
  Off("IsDetailEnabled", [](A&) { benchmark::DoNotOptimize(IsDetailEnabled()); });
  Off("CurrentProvenanceLevel", [](A&) { benchmark::DoNotOptimize(CurrentProvenanceLevel()); });
  Off("CurrentContext", [](A&) { benchmark::DoNotOptimize(CurrentContext()); });
  Off("SetRank, Rank", [](A&) {
    SetRank(3);
    benchmark::DoNotOptimize(Rank());
  });
  Off("GetStats", [](A&) { benchmark::DoNotOptimize(GetStats()); });
  Off("LogPath", [](A&) { benchmark::DoNotOptimize(LogPath()); });
  Off("Flush", [](A&) { benchmark::DoNotOptimize(Flush()); });
  Off("Frame, NextCompile", [](A& a) { benchmark::DoNotOptimize(a.frame.NextCompile()); });
}

void RegisterArtifacts() {
  using namespace libtrace;
  Off("EmitCompilationMetrics", [](A& a) { EmitCompilationMetrics(a.metrics); });
  Off("EmitCacheEvent", [](A& a) { EmitCacheEvent("l", CacheState::kHit, a.cache_info); });
  Off("EmitCollectiveLog", [](A& a) { EmitCollectiveLog(a.collectives); });
  Off("EmitCollectiveState", [](A& a) { EmitCollectiveState(a.state); });
  Off("EmitCollectiveSchedule", [](A& a) { EmitCollectiveSchedule(a.ops); });
  Off("EmitGraphDump", [](A&) { EmitGraphDump("n", "cpp", "", "text"); });
  Off("EmitBeforeJointGraph", [](A&) { EmitBeforeJointGraph("text"); });
  Off("EmitAfterJointGraph", [](A&) { EmitAfterJointGraph("text"); });
  Off("EmitOutputGraph", [](A& a) { EmitOutputGraph(a.sizes, "text"); });
  Off("EmitOutputCode", [](A&) { EmitOutputCode("", "code"); });
  Off("GraphExecutionOrder::Executed", [](A& a) { a.order.Executed(a.id, "forward"); });
  Off("GraphExecutionOrder::Emit", [](A& a) { a.order.Emit(); });
  Off("EmitMeasuredRuntime", [](A& a) { EmitMeasuredRuntime(a.measured, "cpu"); });
  Off("EmitRuntimeAndTensorMeta", [](A& a) { EmitRuntimeAndTensorMeta(a.runtimes); });
  Off("EmitModelLoad", [](A& a) { EmitModelLoad(a.load); });
  Off("EmitPackage", [](A& a) { EmitPackage(a.package); });
  Off("RunDigest, Kernel, Choice, Output, Emit", [](A&) {
    RunDigest("forward")
        .Kernel("k", "code")
        .Choice("k", "tile")
        .Output("0", "float32[1]", "abcd")
        .Emit();
  });
  Off("Provenance::AddPreToPost, AddKernelToPost, AddStackTrace, Emit", [](A& a) {
    a.provenance.AddPreToPost("a_node", "a_node_with_a_name");
    a.provenance.AddKernelToPost("a_kernel_with_a_name:1", "a_node_with_a_name");
    a.provenance.AddStackTrace("a_kernel_with_a_name:1", "a line");
    a.provenance.Emit();
  });
}

void RegisterC() {
  Off("libtrace_enabled", [](A&) { benchmark::DoNotOptimize(libtrace_enabled()); });
  Off("libtrace_emit", [](A&) { libtrace_emit(nullptr, "k", "{}", nullptr, 0); });
  Off("libtrace_emit_artifact", [](A&) { libtrace_emit_artifact(nullptr, "k", "json", "1", 1); });
  Off("libtrace_instant", [](A&) { libtrace_instant(nullptr, "k", "{}"); });
  Off("libtrace_emit_graph_dump",
      [](A&) { libtrace_emit_graph_dump(nullptr, "n", "cpp", nullptr, "text", 4); });
  Off("libtrace_emit_output_graph",
      [](A&) { libtrace_emit_output_graph(nullptr, "{}", "text", 4); });
  Off("libtrace_emit_output_code", [](A&) { libtrace_emit_output_code(nullptr, "", "code", 4); });
  Off("libtrace_emit_collective_schedule",
      [](A& a) { libtrace_emit_collective_schedule(nullptr, a.reasons, 1); });
  Off("libtrace_emit_collective_log",
      [](A& a) { libtrace_emit_collective_log(nullptr, &a.collective, 1); });
  Off("libtrace_emit_collective_state",
      [](A&) { libtrace_emit_collective_state(nullptr, "0", 1, 1000); });
  Off("libtrace_emit_cache_event",
      [](A& a) { libtrace_emit_cache_event(nullptr, &a.cache_event); });
  Off("libtrace_provenance_pre_to_post, _kernel_to_post, _stack_trace, _emit", [](A& a) {
    libtrace_provenance_pre_to_post(a.c_provenance, "a_node", "a_node_with_a_name");
    libtrace_provenance_kernel_to_post(a.c_provenance, "a_kernel_with_a_name", 1, "a_node");
    libtrace_provenance_stack_trace(a.c_provenance, "a_kernel_with_a_name", 1, "a line");
    libtrace_provenance_emit(nullptr, a.c_provenance);
  });
  Off("libtrace_provenance_new, _free",
      [](A&) { libtrace_provenance_free(libtrace_provenance_new()); });
  Off("libtrace_run_digest_new, _kernel, _choice, _output, _emit, _free", [](A&) {
    libtrace_run_digest* digest = libtrace_run_digest_new("forward", 0);
    libtrace_run_digest_kernel(digest, "k", "code", 4);
    libtrace_run_digest_choice(digest, "k", "tile");
    libtrace_run_digest_output(digest, "0", "float32[1]", "abcd", 4);
    libtrace_run_digest_emit(nullptr, digest);
    libtrace_run_digest_free(digest);
  });
  Off("libtrace_execution_order_new, _free",
      [](A&) { libtrace_execution_order_free(libtrace_execution_order_new(nullptr, 0)); });
  Off("libtrace_execution_order_ran",
      [](A& a) { libtrace_execution_order_ran(a.c_order, 1, 0, "forward", 1000); });
  Off("libtrace_compile_restart, _fail, _metric", [](A& a) {
    libtrace_compile_restart(a.compile, "a guard did not hold");
    libtrace_compile_fail(a.compile, "std::runtime_error", "a failure with a long reason");
    libtrace_compile_metric(a.compile, "graph_op_count", "7");
  });
  Off("libtrace_context_enter, _leave", [](A& a) {
    libtrace_context_enter(a.context);
    libtrace_context_leave(a.context);
  });
  Off("libtrace_context_take, _free", [](A&) { libtrace_context_free(libtrace_context_take()); });
  Off("libtrace_span_begin, _arg, _end", [](A&) {
    libtrace_span* span = libtrace_span_begin(nullptr, "k");
    libtrace_span_arg(span, "n", "1");
    libtrace_span_end(span);
  });
  Off("libtrace_compile_begin, _end", [](A& a) {
    libtrace_compile_end(libtrace_compile_begin(nullptr, 1, 0, "f", "f.c", 3, a.reasons, 1));
  });
  Off("libtrace_compile_begin_described, _end", [](A& a) {
    libtrace_compile_end(libtrace_compile_begin_described(nullptr, &a.description));
  });
  Off("libtrace_stack_begin, _end",
      [](A&) { libtrace_stack_end(libtrace_stack_begin(nullptr, 0)); });
  Off("libtrace_new_frame", [](A&) { benchmark::DoNotOptimize(libtrace_new_frame()); });
  Off("libtrace_set_rank", [](A&) { libtrace_set_rank(3); });
  Off("libtrace_flush", [](A&) { benchmark::DoNotOptimize(libtrace_flush(1000)); });
  Off("libtrace_get_stats", [](A&) {
    libtrace_stats stats{};
    stats.struct_size = sizeof stats;
    libtrace_get_stats(&stats);
    benchmark::DoNotOptimize(stats);
  });
}

[[maybe_unused]] const bool g_is_registered = [] {
  RegisterScopes();
  RegisterQuestions();
  RegisterArtifacts();
  RegisterC();
  return true;
}();

}  // namespace
