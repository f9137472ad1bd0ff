// AOTInductor packages: an observer beside a loader of the program's, the loader's options, packages
// from a cache, ops that the package does not contain. Run by test_aoti.py, which has PyTorch compile
// the packages (LIBTRACE_TEST_PACKAGE, LIBTRACE_TEST_CUSTOM_OPS).
#include "libtrace/torch/aotinductor.h"

#if LIBTRACE_HAS_AOTINDUCTOR
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/keeps_errno.h"
#include "tests/libtrace/log_text.h"
#include "torch/compat.h"

namespace libtrace {
namespace {

using testing::Contains;
using testing::MemoryTrace;
using testing::PayloadsOf;
using Loader = torch::inductor::AOTIModelPackageLoader;

std::string Package(const char* variable = "LIBTRACE_TEST_PACKAGE") {
  const char* const path = std::getenv(variable);
  REQUIRE(path != nullptr);
  return path;
}
at::Tensor Input() { return at::linspace(-1, 1, 4 * 16).reshape({4, 16}); }

size_t CountOf(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_CASE("aoti: an observer records the runs of a loader that the program made", "[.aoti]") {
  Loader loader(Package());
  const at::Tensor expected = loader.run({Input()})[0];
  MemoryTrace trace;
  auto executions = std::make_shared<GraphExecutionOrder>();
  {
    AotiObserver observer(loader, Package(),
                          {.name = "classifier", .executions = executions, .digest_every = 2});
    for (int run = 0; run < 3; ++run) {
      AotiObserver::Call call(observer);
      const std::vector<at::Tensor> outputs = loader.run({Input()});
      call.Returned(outputs);
      CHECK(outputs[0].equal(expected));
    }
  }
  executions->Emit();
  const auto records = trace.records();
  CHECK(Contains(PayloadsOf(records, "libtrace_package"), "\"kind\": \"aotinductor\""));
  CHECK(Contains(PayloadsOf(records, "libtrace_model_load"), "\"state\": \"loaded\""));
  const std::string tensors = PayloadsOf(records, "inductor_runtime_and_tensor_meta");
  CHECK(CountOf(tensors, "\"name\": \"cpp_fused_") == 2);
  CHECK(CountOf(PayloadsOf(records, "libtrace_measured_runtime"), "\"name\": \"cpp_fused_") == 2);
  const std::string digests = PayloadsOf(records, "libtrace_run_digest");
  CHECK(CountOf(digests, "\"kind\": \"output\"") == 2);
  CHECK(Contains(digests, "\"call\": 2"));
  CHECK(CountOf(PayloadsOf(records, "graph_execution"), "\"compile_id\"") == 3);
  for (const auto& record : records) {
    INFO(record.prefix << record.envelope);
    CHECK(
        (Contains(record.prefix, "aoti_test.cc:") || Contains(record.prefix, "record_writer.cc:")));
  }
}

TEST_CASE("aoti: while tracing is off an observer does nothing", "[.aoti]") {
  Stop();
  Loader loader(Package());
  AotiObserver observer(loader, Package());
  const AotiObserver::Call call(observer);
  CHECK(loader.run({Input()}).size() == 1);
}

TEST_CASE("aoti: a model with the options of the loader", "[.aoti]") {
  const AotiOptions options{
      .name = "classifier", .run_single_threaded = false, .num_runners = 2, .device_index = -1};
  MemoryTrace trace;
#if LIBTRACE_TORCH < 207
  CHECK_THROWS_AS(AotiModel(Package(), options), std::invalid_argument);
  CHECK(Contains(trace.text(), "\"fail_type\": \"std::invalid_argument\""));
#else
  AotiModel model(Package(), options);
  const at::Tensor expected = model.Run({Input()})[0];
  std::vector<std::thread> threads;
  std::vector<int> equal(2);
  for (int& is_equal : equal) {
    threads.emplace_back([&] {
      for (int run = 0; run < 20; ++run)
        is_equal += model.Run({Input()}, nullptr)[0].equal(expected) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(equal == std::vector<int>{20, 20});
  CHECK(model.loader().run({Input()})[0].equal(expected));
  AotiModel single(Package(), {.run_single_threaded = true});
  CHECK(single.Run({Input()})[0].equal(expected));
#endif
}

TEST_CASE("aoti: a package is built once and loaded from a cache, as a file too", "[.aoti]") {
  MemoryTrace trace;
  const at::Tensor expected = AotiModel(Package()).Run({Input()})[0];
  for (const bool as_files : {true, false}) {
    const testing::TemporaryDirectory folder;
    int build_count = 0;
    const auto build = [&] {
      ++build_count;
      return Package();
    };
    const AotiOptions options{.name = "classifier"};
    LoadedModels loaded;
    std::string key;
    for (const CacheState state : {CacheState::kMiss, CacheState::kHit, CacheState::kHit}) {
      CompileCache cache(
          {.layer = "libtrace_aoti", .directory = folder.string(), .artifacts_as_files = as_files});
      const CachedAotiModel cached = LoadOrBuildPackage(cache, {.source = "1"}, options, build);
      CHECK(cached.state == state);
      CHECK(cached.model->Run({Input()})[0].equal(expected));
      key = cached.key;
    }
    CHECK(build_count == 1);
    CompileCache cache({.layer = "libtrace_aoti", .directory = folder.string()});
    for (int i = 0; i < 2; ++i) {
      const auto held = LoadOrBuildPackage(cache, {.source = "1"}, options, build, &loaded);
      CHECK(held.model->Run({Input()})[0].equal(expected));
    }
    CHECK(loaded.stats().hit_count == 1);
    // One that libtorch cannot load is built again, and replaced.
    REQUIRE(cache.Remove(key).ok());
    REQUIRE(cache.Put(key, {.artifact = "no package"}).ok());
    const auto again = LoadOrBuildPackage(cache, {.source = "1"}, options, build);
    CHECK(again.state == CacheState::kMiss);
    CHECK(again.model->Run({Input()})[0].equal(expected));
    CHECK(build_count == 2);
  }
  const auto records = trace.records();
  const std::string loads = PayloadsOf(records, "libtrace_model_load");
  for (const char* state : {"compiled", "cache_hit", "memory_hit"})
    CHECK(Contains(loads, "\"state\": \"" + std::string(state) + "\""));
  CHECK(Contains(PayloadsOf(records, "libtrace_package"), "\"path\": \"cache:"));
  const std::string hits = PayloadsOf(records, "libtrace_aoti_cache_hit");
  CHECK(Contains(hits, "cpu_features: "));
  CHECK(Contains(hits, "libtorch_build: "));
  CHECK(Contains(trace.text(), "the cached package cannot be loaded: "));
}

TEST_CASE("aoti: ops that the package calls are in it, those of branches too", "[.aoti]") {
  MemoryTrace trace;
  AotiModel model(Package("LIBTRACE_TEST_CUSTOM_OPS"), {.name = "custom_ops"});
  CHECK(model.Run({at::ones({4})})[0].equal(at::ones({4}).mul(5)));
  CHECK(model.Run({at::ones({4}).mul(-1)})[0].equal(at::ones({4}).mul(-5)));
  const auto records = trace.records();
  const std::string package = PayloadsOf(records, "libtrace_package");
  INFO(package);
#if LIBTRACE_TORCH < 209  // PyTorch 2.6 and 2.8 list the ops of the outer graph only
  CHECK(CountOf(package, "\"op\": \"acme::twice\"") == 1);
#else
  CHECK(CountOf(package, "\"op\": \"acme::twice\"") == 3);
  for (const char* index : {"0", "1", "2"})
    CHECK(CountOf(package, "{\"index\": " + std::string(index) + ", ") == 1);
  CHECK(Contains(package, "\"name\": \"true_graph_0_buf0\""));
  CHECK(Contains(package, "\"name\": \"false_graph_0_buf0\""));
  const std::string mappings = PayloadsOf(records, "inductor_provenance_tracking_node_mappings");
  INFO(mappings);
  CHECK(CountOf(mappings, "\"aoti_torch_cpu_twice:") >= 3);
  CHECK(Contains(PayloadsOf(records, "inductor_provenance_tracking_kernel_stack_traces"),
                 "aoti_custom_ops.py"));
#endif
}

TEST_CASE("aoti: errno survives", "[.aoti]") {
  const MemoryTrace trace;
  const std::string path = Package();
  const std::vector<at::Tensor> inputs{Input()};
  AotiOptions options{.digest_every = 1};
  options.executions = std::make_shared<GraphExecutionOrder>();
  std::optional<AotiModel> model;
  // Not by default: in the old ABI of std::string (2.6) the caller allocates the names in it.
  AotiOptions default_options;
  KEEPS_ERRNO(model.emplace(path, std::move(default_options)));
  for (int i = 0; i < 2; ++i) KEEPS_ERRNO(model->Run(inputs));
  KEEPS_ERRNO(model.reset());
  Loader loader(path);
  std::optional<AotiObserver> observer;
  KEEPS_ERRNO(observer.emplace(loader, path, std::move(options)));
  std::optional<AotiObserver::Call> call;
  KEEPS_ERRNO(call.emplace(*observer));
  const std::vector<at::Tensor> outputs = loader.run(inputs);
  KEEPS_ERRNO(call->Returned(outputs));
  KEEPS_ERRNO(call.reset());
  KEEPS_ERRNO(observer.reset());
  const testing::TemporaryDirectory folder;
  CompileCache cache({.layer = "libtrace_aoti", .directory = folder.string()});
  const AotiRequest request;
  const AotiOptions plain;
  for (int i = 0; i < 2; ++i)
    KEEPS_ERRNO(LoadOrBuildPackage(cache, request, plain, [&] { return path; }));
}

}  // namespace
}  // namespace libtrace
#endif
