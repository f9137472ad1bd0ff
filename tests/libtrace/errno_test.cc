// errno is the same after every public function of the core and the C API as before.
#include <fstream>
#include <regex>
#include <set>
#include <stdexcept>

#include "libtrace/artifacts/cache_event.h"
#include "libtrace/artifacts/collective_log.h"
#include "libtrace/artifacts/collective_schedule.h"
#include "libtrace/artifacts/graph_dump.h"
#include "libtrace/artifacts/graph_execution.h"
#include "libtrace/artifacts/measured_runtime.h"
#include "libtrace/artifacts/package.h"
#include "libtrace/artifacts/provenance.h"
#include "libtrace/artifacts/run_digest.h"
#include "libtrace/artifacts/runtime_and_tensor_meta.h"
#include "libtrace/compile.h"
#include "libtrace/libtrace.h"
#include "libtrace/trace.h"
#include "tests/libtrace/keeps_errno.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

using testing::MemoryTrace;
using testing::TemporaryDirectory;

constexpr const char* kLong = "a name that is too long to be kept within a string object itself";

void CheckScopes() {
  const Context context;
  const StackFrame frames[] = {{kLong, 1, kLong, {}}};
  std::optional<ContextScope> entered;
  std::optional<SubgraphScope> subgraph;
  std::optional<StackScope> stack;
  KEEPS_ERRNO(entered.emplace(context); CurrentContext(); entered.reset());
  KEEPS_ERRNO(subgraph.emplace(kLong); subgraph.reset());
  KEEPS_ERRNO(stack.emplace(frames); stack.reset());
  KEEPS_ERRNO(FrameOf());
  KEEPS_ERRNO(CaptureStack());
}

void CheckCompiles() {
  Frame frame;
  CompileDescription description{.function = kLong, .file = kLong, .line = 1};
  description.callers.push_back({kLong, 1, kLong, {}});
  description.recompile_reasons = {kLong};
  std::optional<Compile> compile;
  KEEPS_ERRNO(compile.emplace(frame, description));
  KEEPS_ERRNO(compile->metrics().Set("triton_version", kLong));
  KEEPS_ERRNO(compile->metrics().SetJson("gc_time_us", "[1, 2]"));
  KEEPS_ERRNO(compile->Arg("arg", kLong));
  KEEPS_ERRNO(compile->Restart(kLong));
  KEEPS_ERRNO(compile->Fail(kLong, kLong, kLong, 1));
  KEEPS_ERRNO(compile->End(); compile.reset());
  const auto describe = [&](CompileDescription& made) { made.function = kLong; };
  KEEPS_ERRNO(compile.emplace(frame, describe));
  try {
    throw std::runtime_error(kLong);
  } catch (const std::exception&) {
    KEEPS_ERRNO(compile->FailWithCurrentException());
  }
  KEEPS_ERRNO(compile.reset());
  const CompilationMetrics metrics;
  KEEPS_ERRNO(EmitCompilationMetrics(metrics));
  std::optional<TimedSpan> span;
  KEEPS_ERRNO(span.emplace(kLong, kLong));
  KEEPS_ERRNO(span->Arg("arg", kLong));
  KEEPS_ERRNO(span->End(); span.reset());
  KEEPS_ERRNO(EmitInstant(kLong, [](JsonWriter& json) { json.Field("x", 1); }));
}

void CheckArtifacts() {
  const auto number = [](MetadataWriter& json) { json.Int(1); };
  const auto text = [](Payload& payload) { payload.text() = kLong; };
  KEEPS_ERRNO(Emit("acme", number, text));
  KEEPS_ERRNO(EmitArtifact("acme", "string", text));
  KEEPS_ERRNO(EmitArtifact("acme", "no encoding", text));
  KEEPS_ERRNO(EmitJsonArtifact("acme", JsonStyle::kOneLine, [](JsonWriter& json) { json.Int(1); }));
  CacheInfo info;
  info.key = kLong;
  KEEPS_ERRNO(EmitCacheEvent(kLong, CacheState::kMiss, info));
  KEEPS_ERRNO(EmitCacheEvent(kLong, CacheState::kDisabled, info));
  KEEPS_ERRNO(EmitCacheEvent(kLong, CacheState::kHit, [](CacheInfo& made) { made.key = kLong; }));
  const IssuedCollective issued{.op = kLong, .process_group = kLong};
  KEEPS_ERRNO(EmitCollectiveLog({&issued, 1}));
  const CollectiveState state{.process_group = kLong};
  KEEPS_ERRNO(EmitCollectiveState(state));
  const std::optional<std::string> ops[] = {kLong};
  KEEPS_ERRNO(EmitCollectiveSchedule(ops));
  const GraphSizes sizes{{kLong, {kLong}}};
  KEEPS_ERRNO(EmitGraphDump(kLong, kLong, kLong, kLong));
  KEEPS_ERRNO(EmitOutputGraph(sizes, kLong));
  KEEPS_ERRNO(EmitBeforeJointGraph(kLong); EmitAfterJointGraph(kLong));
  KEEPS_ERRNO(EmitOutputCode(kLong, kLong));
  const MeasuredOp measured{.name = kLong};
  KEEPS_ERRNO(EmitMeasuredRuntime({&measured, 1}, "cpu"));
  const OpRuntime runtime{.name = kLong};
  KEEPS_ERRNO(EmitRuntimeAndTensorMeta({&runtime, 1}));
  const ModelLoad load{.model = kLong, .weights = {{.name = kLong}}};
  KEEPS_ERRNO(EmitModelLoad(load));
  KEEPS_ERRNO(SizeOfWeights(load.weights));
  KEEPS_ERRNO(EmitModelLoad([](ModelLoad& made) { made.model = kLong; }));
  const Package package{.path = kLong};
  KEEPS_ERRNO(EmitPackage(package));
  KEEPS_ERRNO(EmitPackage([](Package& made) { made.path = kLong; }));
}

void CheckCollectors() {
  Provenance provenance;
  KEEPS_ERRNO(Provenance::KernelCall(kLong, 1));
  KEEPS_ERRNO(Provenance::FormatFrame(kLong, 1, kLong, kLong));
  KEEPS_ERRNO(provenance.AddPreToPost(kLong, kLong));
  KEEPS_ERRNO(provenance.AddKernelToPost(kLong, kLong));
  KEEPS_ERRNO(provenance.AddStackTrace(kLong, kLong));
  KEEPS_ERRNO(provenance.Emit(); provenance.Clear());
  std::optional<RunDigest> digest;
  const RunDigest other(kLong);
  KEEPS_ERRNO(digest.emplace(kLong));
  KEEPS_ERRNO(digest->Output("0", kLong, kLong).Kernel(kLong, kLong).Choice(kLong, kLong));
  KEEPS_ERRNO(digest->PartsOf(other); digest->Emit());
  std::optional<GraphExecutionOrder> order;
  KEEPS_ERRNO(order.emplace(GraphExecutionOrder::Options{.per_execution = true}));
  KEEPS_ERRNO(order->Executed(CompileId::Frame(0), kLong, 1));
  KEEPS_ERRNO(order->Emit(); order.reset());
}

TEST_CASE("errno survives every function of the core", "[errno]") {
  for (const bool is_on : {true, false}) {
    std::optional<MemoryTrace> trace;
    if (is_on) trace.emplace();
    CheckScopes();
    CheckCompiles();
    CheckArtifacts();
    CheckCollectors();
    KEEPS_ERRNO(SetRank(3); Rank(); SetRank({}));
    KEEPS_ERRNO(GetStats(); LogPath(); CurrentProvenanceLevel(); Flush());
    if (is_on) CHECK(GetStats().record_count > 30);
  }
}

TEST_CASE("errno survives starting, stopping, losses and sinks", "[errno]") {
  const TemporaryDirectory directory;
  KEEPS_ERRNO(Options::FromEnvironment());
  FileSinkOptions file{.directory = directory.string()};
  std::shared_ptr<TraceSink> sink;
  KEEPS_ERRNO(sink = MakeFileSink(std::move(file)));
  for (const AsyncMode mode : {AsyncMode::kOff, AsyncMode::kBlock}) {
    for (const std::string& path : {directory.string(), std::string("/proc/none/trace")}) {
      Options options;
      options.directory = path;
      options.async = mode;
      options.on_error = [](LossKind, const std::string&) { errno = EPERM; };
      KEEPS_ERRNO(Start(std::move(options)));
      KEEPS_ERRNO(EmitInstant(kLong));
      KEEPS_ERRNO(Flush(); LogPath());
      KEEPS_ERRNO(Stop());
    }
  }
  MemorySink memory;
  memory.Write(kLong);
  KEEPS_ERRNO(memory.records());
  KEEPS_ERRNO(memory.text());
}

void CheckCompilesOfC(const libtrace_site* site) {
  libtrace_frame frame{sizeof frame, kLong, kLong, 1, kLong};
  libtrace_compile_description description{};
  description.struct_size = sizeof description;
  description.function = kLong;
  description.callers = &frame;
  description.caller_count = 1;
  libtrace_compile *compile = nullptr, *described = nullptr;
  KEEPS_ERRNO(
      compile = libtrace_compile_begin(site, libtrace_new_frame(), 0, kLong, kLong, 1, &kLong, 1));
  KEEPS_ERRNO(described = libtrace_compile_begin_described(site, &description));
  KEEPS_ERRNO(libtrace_compile_metric(described, "triton_version", "\"1\""));
  KEEPS_ERRNO(libtrace_compile_restart(described, kLong));
  KEEPS_ERRNO(libtrace_compile_fail(described, kLong, kLong));
  libtrace_context* context = nullptr;
  KEEPS_ERRNO(context = libtrace_context_take());
  KEEPS_ERRNO(libtrace_context_enter(context); libtrace_context_leave(context));
  KEEPS_ERRNO(libtrace_context_free(context));
  KEEPS_ERRNO(libtrace_compile_end(described); libtrace_compile_end(compile));
  libtrace_span* span = nullptr;
  KEEPS_ERRNO(span = libtrace_span_begin(site, kLong));
  KEEPS_ERRNO(libtrace_span_arg(span, kLong, "[1, 2]"));
  KEEPS_ERRNO(libtrace_span_end(span));
  libtrace_stack* stack = nullptr;
  KEEPS_ERRNO(stack = libtrace_stack_begin(&frame, 1));
  KEEPS_ERRNO(libtrace_stack_end(stack));
}

void CheckCollectorsOfC(const libtrace_site* site) {
  libtrace_provenance* provenance = nullptr;
  KEEPS_ERRNO(provenance = libtrace_provenance_new());
  KEEPS_ERRNO(libtrace_provenance_pre_to_post(provenance, kLong, kLong));
  KEEPS_ERRNO(libtrace_provenance_kernel_to_post(provenance, kLong, 1, kLong));
  KEEPS_ERRNO(libtrace_provenance_stack_trace(provenance, kLong, 1, kLong));
  KEEPS_ERRNO(libtrace_provenance_emit(site, provenance); libtrace_provenance_free(provenance));
  libtrace_run_digest* digest = nullptr;
  KEEPS_ERRNO(digest = libtrace_run_digest_new(kLong, 0));
  KEEPS_ERRNO(libtrace_run_digest_kernel(digest, kLong, kLong, 9));
  KEEPS_ERRNO(libtrace_run_digest_choice(digest, kLong, kLong));
  KEEPS_ERRNO(libtrace_run_digest_output(digest, kLong, kLong, kLong, 9));
  KEEPS_ERRNO(libtrace_run_digest_emit(site, digest); libtrace_run_digest_free(digest));
  libtrace_execution_order* order = nullptr;
  KEEPS_ERRNO(order = libtrace_execution_order_new(site, 1));
  KEEPS_ERRNO(libtrace_execution_order_ran(order, 0, 0, kLong, 1));
  KEEPS_ERRNO(libtrace_execution_order_free(order));
}

void CheckRecordsOfC(const libtrace_site* site) {
  KEEPS_ERRNO(libtrace_abi_version(); libtrace_version(); libtrace_enabled());
  KEEPS_ERRNO(libtrace_emit(site, kLong, "{}", kLong, 9));
  KEEPS_ERRNO(libtrace_emit_artifact(site, kLong, "json", kLong, 9));
  KEEPS_ERRNO(libtrace_instant(site, kLong, "{}"));
  KEEPS_ERRNO(libtrace_emit_graph_dump(site, kLong, kLong, kLong, kLong, 9));
  KEEPS_ERRNO(libtrace_emit_output_graph(site, "{}", kLong, 9));
  KEEPS_ERRNO(libtrace_emit_output_code(site, kLong, kLong, 9));
  KEEPS_ERRNO(libtrace_emit_collective_schedule(site, &kLong, 1));
  libtrace_collective collective{};
  collective.struct_size = sizeof collective;
  collective.op = kLong;
  KEEPS_ERRNO(libtrace_emit_collective_log(site, &collective, 1));
  KEEPS_ERRNO(libtrace_emit_collective_state(site, kLong, 1, 1));
  libtrace_cache_event event{};
  event.struct_size = sizeof event;
  event.layer = event.key = kLong;
  KEEPS_ERRNO(libtrace_emit_cache_event(site, &event));
  char line[100];
  KEEPS_ERRNO(libtrace_component_line(kLong, kLong, kLong, 9, line, sizeof line));
  libtrace_stats stats{sizeof stats, 0, 0, 0};
  KEEPS_ERRNO(libtrace_get_stats(&stats));
  KEEPS_ERRNO(libtrace_set_rank(1); libtrace_set_rank(-1));
}

TEST_CASE("errno survives every function of the C API", "[errno][c_api]") {
  const TemporaryDirectory directory;
  const std::string path = directory.string();
  const libtrace_site site{kLong, kLong, 1};
  libtrace_options options;
  KEEPS_ERRNO((libtrace_options_init)(&options);
              libtrace_options_init_sized(&options, sizeof options));
  options.directory = path.c_str();
  for (const bool is_on : {true, false}) {
    if (is_on) KEEPS_ERRNO(libtrace_start(&options));
    CheckRecordsOfC(&site);
    CheckCompilesOfC(&site);
    CheckCollectorsOfC(&site);
    KEEPS_ERRNO(libtrace_flush(1000));
    KEEPS_ERRNO(libtrace_stop());
  }
}

std::string SourceText(const std::string& path) {
  std::ifstream file(std::string(PROJECT_SOURCE) + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("Every function of the C API is called by the test above", "[errno][c_api]") {
  const std::string header = SourceText("/libtrace/include/libtrace/libtrace.h");
  const std::string test = SourceText("/tests/libtrace/errno_test.cc");
  const std::regex declaration(R"(\n[a-z][a-z0-9_ *]*[ *](libtrace_[a-z_]+)\()");
  std::set<std::string> names;
  for (std::sregex_iterator it(header.begin(), header.end(), declaration), end; it != end; ++it)
    names.insert((*it)[1]);
  CHECK(names.size() > 45);
  for (const std::string& name : names) {
    INFO(name);
    CHECK(
        (test.find(name + "(") != std::string::npos || test.find(name + ")") != std::string::npos));
  }
}

}  // namespace
}  // namespace libtrace
