#include "libtrace/torch/loaded_models.h"

#include <ATen/ops/ones.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "libtrace/torch/torchscript.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

using testing::MemoryTrace;
using testing::TemporaryDirectory;

LoadedModels::Model Model(const std::string& text, uint64_t size_bytes) {
  return {std::make_shared<std::string>(text), size_bytes};
}

// What the models give for `key`, which is loaded as itself.
std::string Get(LoadedModels& models, const std::string& key, bool* is_hit, uint64_t size = 10) {
  const auto load = [&] { return Model(key, size); };
  return *std::static_pointer_cast<std::string>(models.GetOrLoad(key, load, is_hit));
}

bool IsHeld(LoadedModels& models, const std::string& key, uint64_t size = 10) {
  bool is_hit = false;
  CHECK(Get(models, key, &is_hit, size) == key);
  return is_hit;
}

TEST_CASE("loaded models: the one not asked for longest goes first") {
  LoadedModels models(30);
  for (const char* key : {"a", "b", "c", "a"}) IsHeld(models, key);
  CHECK_FALSE(IsHeld(models, "d"));  // for which b goes
  CHECK(IsHeld(models, "a"));
  CHECK_FALSE(IsHeld(models, "b"));
  CHECK(models.stats().model_count == 3);
  CHECK(models.stats().size_bytes == 30);
  CHECK(models.stats().eviction_count == 2);

  CHECK_FALSE(IsHeld(models, "larger than all", 31));
  CHECK_FALSE(IsHeld(models, "larger than all", 31));
  CHECK(IsHeld(models, "b"));
  CHECK_FALSE(IsHeld(models, "as large as all", 30));
  CHECK(models.stats().model_count == 1);

  models.Clear();
  CHECK(models.stats().size_bytes == 0);
  CHECK_FALSE(IsHeld(models, "as large as all", 30));
}

TEST_CASE("loaded models: threads that ask for one model at once load it once") {
  LoadedModels models;
  std::atomic<int> load_count = 0, hit_count = 0;
  const auto load = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ++load_count;
    return Model("model", 10);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      bool is_hit = false;
      models.GetOrLoad("key", load, &is_hit);
      hit_count += is_hit;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(load_count == 1);
  CHECK(hit_count == 7);
}

TEST_CASE("loaded models: a load that fails is nobody else's failure") {
  LoadedModels models;
  std::atomic<int> load_count = 0, failure_count = 0;
  const auto load = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (++load_count == 1) throw std::runtime_error("first");
    return Model("model", 10);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      bool is_hit = false;
      try {
        models.GetOrLoad("key", load, &is_hit);
      } catch (const std::runtime_error&) {
        ++failure_count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failure_count == 1);
  CHECK(load_count == 2);
}

TEST_CASE("loaded models: a load that asks for its own key does not wait for itself") {
  LoadedModels models;
  bool is_hit = true;
  const auto outer = [&] {
    CHECK_FALSE(IsHeld(models, "key"));
    return Model("outer", 10);
  };
  CHECK(*std::static_pointer_cast<std::string>(models.GetOrLoad("key", outer, &is_hit)) == "outer");
  CHECK_FALSE(is_hit);
  CHECK(models.stats().model_count == 1);
}

TEST_CASE("loaded models: loads that need each other's models end") {
  LoadedModels models;
  std::atomic<int> inside = 0, load_count = 0;
  const auto get = [&](const char* mine, const char* other) {
    bool is_hit = false;
    const auto load = [&] {
      ++load_count;
      return Model("inner", 10);
    };
    const auto load_both = [&] {
      ++inside;
      while (inside < 2) std::this_thread::yield();
      models.GetOrLoad(other, load, &is_hit);
      return Model("outer", 10);
    };
    models.GetOrLoad(mine, load_both, &is_hit);
  };
  std::thread first([&] { get("a", "b"); });
  std::thread second([&] { get("b", "a"); });
  first.join();
  second.join();
  CHECK(load_count == 1);  // by the one that would have waited in a circle
  CHECK(models.stats().model_count == 2);
}

torch::jit::Module MatrixModule() {
  torch::jit::Module module("Net");
  module.register_parameter("weight", at::ones({4, 4}), false);
  DefineMethods(module, "def forward(self, x):\n    return torch.mm(x, self.weight)\n", "net.py");
  return module;
}

std::vector<std::string> PayloadsOf(MemoryTrace& trace, std::string_view artifact) {
  std::vector<std::string> payloads;
  for (const testing::LoggedRecord& record : trace.records())
    if (record.IsArtifact(artifact)) payloads.push_back(record.payload);
  return payloads;
}

TEST_CASE("loaded models: a TorchScript model is built once and loaded once") {
  MemoryTrace trace;
  const TemporaryDirectory folder;
  CompileCache cache({.layer = "libtrace_torchscript", .directory = folder.string()});
  int build_count = 0;
  const auto build = [&] {
    ++build_count;
    return MatrixModule();
  };
  const ModelRequest request{.name = "net", .source = "1", .inputs = {at::ones({4, 4})}};
  LoadedModels first, second;  // as if of two processes
  const CachedModel built = LoadOrBuild(cache, request, build, &first);
  const CachedModel again = LoadOrBuild(cache, request, build, &first);
  const CachedModel read = LoadOrBuild(cache, request, build, &second);
  const CachedModel read_again = LoadOrBuild(cache, request, build, &second);
  CHECK(build_count == 1);
  CHECK(built.state == CacheState::kMiss);
  CHECK(again.state == CacheState::kHit);
  CHECK(again.key == built.key);
  CHECK(again.module._ivalue() == built.module._ivalue());
  CHECK(read.module._ivalue() != built.module._ivalue());
  CHECK(read_again.module._ivalue() == read.module._ivalue());
  CHECK(cache.counters().hit_count == 1);  // only `read` asked the cache
  CHECK(first.stats().size_bytes >= 64);   // the weight

  ModelRequest other = request;
  other.inputs = {at::ones({8, 4})};
  CHECK(LoadOrBuild(cache, other, build, &first).state == CacheState::kMiss);
  CHECK(build_count == 2);

  std::vector<std::string> states;
  for (const std::string& load : PayloadsOf(trace, "libtrace_model_load")) {
    const size_t at = load.find("\"state\": \"") + 10;
    states.push_back(load.substr(at, load.find('"', at) - at));
    CHECK(load.find("\"weight_size_bytes\": 64") != std::string::npos);
  }
  CHECK(states ==
        std::vector<std::string>{"compiled", "memory_hit", "cache_hit", "memory_hit", "compiled"});
  const std::vector<std::string> hits = PayloadsOf(trace, "libtrace_torchscript_cache_hit");
  REQUIRE(hits.size() == 3);
  for (const size_t of_memory : {size_t{0}, size_t{2}}) {
    CHECK(hits[of_memory].find("\"answered_by\": \"memory\"") != std::string::npos);
    CHECK(hits[of_memory].find("\"time_saved_ns\": 0") == std::string::npos);
  }
  CHECK(hits[1].find("\"answered_by\": \"local\"") != std::string::npos);
}

TEST_CASE("loaded models: an archive stays in a file where the cache keeps artifacts so") {
  const TemporaryDirectory folder;
  const ModelRequest request{.name = "net", .source = "1", .inputs = {at::ones({4, 4})}};
  int build_count = 0;
  const auto build = [&] {
    ++build_count;
    return MatrixModule();
  };
  for (const bool as_files : {true, true, false}) {  // what one cache kept the other reads
    CompileCache cache({.layer = "libtrace_torchscript",
                        .directory = folder.string(),
                        .artifacts_as_files = as_files});
    CachedModel model = LoadOrBuild(cache, request, build);
    CHECK(model.module.forward({at::ones({1, 4})}).toTensor().sum().item<double>() == 16);
  }
  CHECK(build_count == 1);
}

TEST_CASE("loaded models: a cache that is switched off builds every time") {
  CompileCache cache({.layer = "libtrace_torchscript", .enabled = false});
  LoadedModels loaded;
  int build_count = 0;
  const auto build = [&] {
    ++build_count;
    return MatrixModule();
  };
  for (int i = 0; i < 2; ++i) LoadOrBuild(cache, {.name = "net"}, build, &loaded);
  CHECK(build_count == 2);
  CHECK(loaded.stats().model_count == 0);
}

}  // namespace
}  // namespace libtrace
