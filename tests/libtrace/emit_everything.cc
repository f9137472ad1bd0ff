// Emits a record of every kind, into whatever the environment says. check_schemas.py then holds
// each against its JSON Schema.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

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
#include "libtrace/cache/artifact_recorder.h"
#include "libtrace/cache/layered_cache.h"
#include "libtrace/compile.h"
#include "libtrace/cuda/cuda_activity.h"
#include "libtrace/trace.h"

namespace {

using namespace libtrace;

void EmitCompiles() {
  Frame frame;
  {
    Compile compile(frame, {.function = "forward",
                            .file = "m\xC3\xB6"
                                    "del.cc",
                            .line = 12,
                            .callers = CaptureStack(3)});
    compile.metrics().graph_op_count = 3;
    compile.metrics().feature_usage["libtrace_cache"] = true;
    compile.metrics().guard_latency_us = 1.5;
    compile.metrics().pre_grad_pass_time_us = 10;
    compile.metrics().joint_graph_pass_time_us = 20;
    compile.metrics().post_grad_pass_time_us = 30;
    compile.Arg("nodes", 3);
    const SubgraphScope subgraph("body_0");
    EmitOutputGraph({{"x", {"2", "3"}}, {"y", {"s0", "3"}}}, "graph(x, y):\n  return x + y\n");
    EmitBeforeJointGraph("graph(x, y):\n  return x + y * 1\n");
    EmitAfterJointGraph("graph(x, y):\n  return x + y\n");
    EmitGraphDump("libtrace_torchscript_optimized", "torchscript", "", "graph():\n");
    EmitOutputCode("/tmp/code.cc", "int main() {}\n");
    EmitOutputCode("", "");
    Provenance provenance;
    provenance.AddPreToPost("matmul", "mm");
    provenance.AddKernelToPost(Provenance::KernelCall("fused_mm", 1), "mm");
    provenance.AddStackTrace("fused_mm:1",
                             Provenance::FormatFrame("m.cc", 8, "f", "return x * y;"));
    provenance.Emit();
    EmitRuntimeAndTensorMeta(std::vector<OpRuntime>{
        {"op0", false, 125.5, {{{2, 3}, {3, 1}, "float32", "cpu"}, {{}, {}, std::nullopt, {}}}},
        {"torch.ops._c10d_functional.all_reduce_.default", true, 0, {}}});
    EmitCollectiveSchedule(std::vector<std::optional<std::string>>{
        "torch.ops._c10d_functional.all_reduce_.default", std::nullopt});
  }
  CompileDescription again{.function = "forward"};
  again.recompile_reasons = {"0/0: input 0: size mismatch at index 0. expected 2, actual 3",
                             "0/0: grad mode changed"};
  Compile compile(frame, std::move(again));
  compile.Restart("graph break");
  compile.Fail("Unsupported", "an op without a kernel", "m.cc", 30);
  EmitInstant("automatic_dynamic", [](JsonWriter& json) { json.Field("name", "x"); });
  CompilationMetrics backward;
  backward.is_forward = false;
  EmitCompilationMetrics(backward);
}

void EmitRunTime() {
  GraphExecutionOrder order({.per_execution = true});
  order.Executed(CompileId::Frame(0, 1), "forward", 1500);
  order.Executed(CompileId{2, 0, 0});
  order.Executed(CompileId::CompiledAutograd(3));
  order.Executed(std::nullopt);
  order.Emit();
  EmitCollectiveLog(std::vector<IssuedCollective>{
      {0,
       "all_reduce",
       "default_pg",
       4,
       "gloo",
       {{2, 3}},
       {{2, 3}},
       "float32",
       "sum",
       {},
       17,
       2.5,
       "0/0",
       1,
       {}},
      {1, "barrier", "default_pg", {}, {}, {}, {}, "", {}, {}, {}, {}, {}, 2, {}}});
  EmitCollectiveState({"default_pg", 1, 17.5, {}});
  EmitCollectiveState({"", 0, {}, 12});
  EmitCollectiveState({.process_group = "default_pg", .sequence_number = 2, .error = "refused"});
  EmitMeasuredRuntime(std::vector<MeasuredOp>{{"op0", "add", 3, 300.5, 90, 120, 125.5},
                                              {"op1", {}, 0, 0, 0, 0, {}}},
                      "cpu");
  RunDigest digest("forward", 2);
  digest.Kernel("fused_mm", "kernel").Choice("mm", "triton_mm_4").Output("0", "float32[1]", "abcd");
  digest.Emit();
  ModelLoad load;
  load.model = "resnet";
  load.kind = "torchscript";
  load.state = "loaded";
  load.duration_ns = 1'000'000;
  load.memory_before_bytes = 1000;
  load.clone_size_bytes = 100;
  load.memory_after_bytes = 2000;
  load.device_peak_before_bytes = 100;
  load.device_peak_after_bytes = 500;
  load.weights = {{"a", {2, 2}, "float32", "cpu", 16, 0x7F0000000040},
                  {"b", {4}, "float32", "cpu", 16, 0x7F0000000040},
                  {"c", {}, "int64", "cuda:0", 8, 0x7F0000000080}};
  EmitModelLoad(load);
  Package package;
  package.path = "model.pt2";
  package.kind = "aotinductor";
  package.files = {{"data/model.so", 100, 0xDEADBEEF}, {"version", 1, {}}};
  package.kernels = {{"fused:1", {"matmul"}, {"mm"}, {"  File \"m.py\", line 1, in f\n"}}};
  package.weights = load.weights;
  package.metadata = {{"AOTI_DEVICE_KEY", "cpu"}};
  package.extern_kernels = {{0, "model", "buf3", "torch.ops.acme.twice.default"}};
  package.code = {{"model", "shared", false, "x86_64", {"libtorch.so"}}};
  package.unread_files.push_back("model/deflated.json");
  EmitPackage(package);
}

void EmitCaches(const std::string& directory) {
  const auto recorder = std::make_shared<ArtifactRecorder>();
  LayeredCompileCache cache({.outer = {.layer = "libtrace_model",
                                       .directory = directory + "/outer",
                                       .recorder = recorder},
                             .inner = {.layer = "libtrace_graph",
                                       .directory = directory + "/inner",
                                       .recorder = recorder},
                             .bundled = false});
  const CacheKey key =
      CacheKeyBuilder("m").Add("model", "resnet\nv2").Add("option[a b]", "1").Build();
  const CacheKey graph = CacheKeyBuilder("g").Add("graph", "x + y").Build();
  const auto compile = [&](LayeredCompileCache::GraphCompiler& compiler) {
    compiler.Compile(graph, true, [] { return CompileOutput{{"code", "n == 2", 0, 0, {}}, {}}; });
    return CompileOutput{{"outer", "n == 2", 0, 0, {}}, {}};
  };
  const auto holds = [](std::string_view) { return true; };
  const auto fails = [](std::string_view) { return false; };
  cache.GetOrCompile(key, holds, compile);
  cache.GetOrCompile(key, holds, compile);
  cache.GetOrCompile(key, fails, compile);
  (void)cache.inner().Bypass(
      {"weights are not constant", "BypassGraphCache", {"line 1", "line 2"}, false});
  LayeredCompileCache bundled(
      {.outer = {.layer = "libtrace_bundle", .directory = directory + "/bundled"},
       .inner = {.layer = "libtrace_graph"},
       .bundled = true});
  bundled.GetOrCompile(key, holds, compile);
  bundled.GetOrCompile(key, holds, compile);
  CompileCache off({.layer = "libtrace_off", .enabled = false});
  off.GetOrCompile(key, {}, [] { return CompileOutput{}; });
  const std::string bundle = recorder->Serialize();
  (void)PopulateCaches(bundle, {&cache.outer()});

  // A lookup that would wait for itself.
  CompileCache nested({.layer = "libtrace_nested", .directory = directory + "/nested"});
  nested.GetOrCompile(graph, {}, [&] {
    return CompileOutput{nested.GetOrCompile(graph, {}, [] { return CompileOutput{}; }).entry, {}};
  });

  // A remote store that does not answer.
  RedisOptions redis;
  redis.unix_socket = directory + "/no.sock";
  redis.allow_unauthenticated = true;
  CompileCacheOptions remote{.layer = "libtrace_model"};
  (void)MakeRedisStore(redis, remote.remote);
  (void)CompileCache(remote).GetOrCompile(key, holds, [] { return CompileOutput{}; });
}

// A kernel as a GPU would report it: CUPTI is the tests' stand-in.
void EmitCuda() {
  setenv("LIBTRACE_CUPTI", CUPTI_STAND_IN, 1);
  CudaActivity activity;
  const std::string node = "mm";
  const CudaLaunchScope scope("aten::mm", &node);
  void* const library = dlopen(CUPTI_STAND_IN, RTLD_LAZY);
  const auto launch =
      reinterpret_cast<void (*)(const char*, uint64_t, uint32_t)>(dlsym(library, "standin_launch"));
  if (launch != nullptr) launch("sgemm", 1200, 7);
  activity.Emit();
  CudaActivity ended_early;  // another client of CUPTI disables the kinds
  const auto disable = reinterpret_cast<int (*)(int32_t)>(dlsym(library, "cuptiActivityDisable"));
  for (int32_t kind = 1; disable != nullptr && kind < 64; ++kind) disable(kind);
}

}  // namespace

int main() {
  if (!IsEnabled()) {
    std::fprintf(stderr, "tracing is off: set TORCH_TRACE\n");
    return 1;
  }
  const std::string directory =
      (std::filesystem::temp_directory_path() / ("libtrace_everything." + std::to_string(getpid())))
          .string();
  EmitCompiles();
  EmitRunTime();
  EmitCaches(directory);
  EmitCuda();
  Emit("user_record", [](MetadataWriter& json) { json.String("not ours"); });
  if (IsDetailEnabled()) Emit("detail_record", [](MetadataWriter&) {});
  EmitArtifact("broken", "json", [](Payload&) { throw std::runtime_error("a loss, on purpose"); });
  SetRank(3);
  EmitInstant("after_loss");
  std::filesystem::remove_all(directory);
  const pid_t child = fork();
  if (child == 0) {
    EmitInstant("in_child");
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}
