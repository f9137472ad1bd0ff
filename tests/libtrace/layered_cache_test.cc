#include "libtrace/cache/layered_cache.h"

#include <filesystem>
#include <memory>
#include <stdexcept>

#include "libtrace/cache/artifact_recorder.h"
#include "tests/catch2.h"
#include "tests/libtrace/compile_output.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

using testing::KeyOf;
using testing::LoggedRecord;
using testing::MemoryTrace;
using testing::TemporaryDirectory;

// A model of two graphs, in caches below one directory.
struct Model {
  explicit Model(const TemporaryDirectory& directory, bool bundled = false,
                 std::shared_ptr<ArtifactRecorder> recorder = nullptr)
      : cache({.outer = {.layer = "outer",
                         .directory = directory.string() + "/outer",
                         .recorder = recorder},
               .inner = {.layer = "inner",
                         .directory = directory.string() + "/inner",
                         .recorder = recorder},
               .bundled = bundled}) {}

  LayeredResult Run(GuardCheck check_guard = {}) {
    return cache.GetOrCompile(
        KeyOf("model"), check_guard, [this](LayeredCompileCache::GraphCompiler& compiler) {
          for (const bool is_backward : {false, true}) {
            compiler.Compile(KeyOf(is_backward ? "bwd" : "fwd"), is_backward, [&] {
              ++compiled_count;
              CompileOutput output;
              output.entry.artifact = is_backward ? "bwd code" : "fwd code";
              output.entry.time_taken_ns = is_backward ? 3'000'000 : 1'000'000;
              output.bypass = is_backward ? bypass : std::nullopt;
              return output;
            });
          }
          CompileOutput output;
          output.entry.artifact = "wrapper";
          output.entry.time_taken_ns = 5'000'000;
          return output;
        });
  }

  LayeredCompileCache cache;
  std::optional<BypassReason> bypass;
  int compiled_count = 0;
};

std::vector<std::string> EventsOf(MemoryTrace& trace, size_t from = 0) {
  std::vector<std::string> names;
  const std::vector<LoggedRecord> records = trace.records();
  for (size_t i = from; i < records.size(); ++i) {
    const std::string& text = records[i].envelope;
    const size_t end = text.find("\", \"encoding\"");
    if (text.starts_with("{\"artifact\": {\"name\": \"") && text.find("_cache_") < end) {
      names.push_back(text.substr(23, end - 23));
    }
  }
  return names;
}

using Names = std::vector<std::string>;

// Entries of all keys below a directory.
int HeadCount(const TemporaryDirectory& directory) {
  int count = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(directory.path()))
    count += file.path().extension() == ".head";
  return count;
}

TEST_CASE("Cold, warm and evicted give PyTorch's order of events", "[layered_cache]") {
  const TemporaryDirectory directory;
  MemoryTrace trace;
  Model model(directory);
  CHECK(model.Run().state == CacheState::kMiss);
  CHECK(EventsOf(trace) == Names{"outer_cache_miss", "inner_cache_miss", "inner_cache_miss"});

  size_t seen = trace.records().size();
  const LayeredResult warm = model.Run();
  CHECK(warm.state == CacheState::kHit);
  CHECK(warm.outer.artifact == "wrapper");
  REQUIRE(warm.graphs.size() == 2);
  CHECK(warm.graphs[1].artifact == "bwd code");
  CHECK(model.compiled_count == 2);
  CHECK(EventsOf(trace, seen) == Names{"inner_cache_hit", "inner_cache_hit", "outer_cache_hit"});
  CHECK(trace.records().back().payload.starts_with(
      R"({"cache_status_detailed": "hit", "forward_time_saved_ms": 2.0, "backward_time_saved_ms": 3.0, )"
      R"("time_saved_ms": 5.0, "key": )"));
  // Hits of graphs tell their components too, so that ranks can be compared.
  CHECK(trace.records()[seen].payload.find("] text: fwd\"]") != std::string::npos);

  seen = trace.records().size();
  REQUIRE(model.cache.inner().Remove(KeyOf("bwd").text).ok());
  CHECK(model.Run().state == CacheState::kMiss);
  CHECK(EventsOf(trace, seen) == Names{"inner_cache_hit", "inner_cache_miss", "outer_cache_miss",
                                       "inner_cache_hit", "inner_cache_miss"});
  CHECK(model.compiled_count == 3);
  CHECK(model.Run().state == CacheState::kHit);  // in step again
}

TEST_CASE("Load stitches the graphs of an entry and names what is not there", "[layered_cache]") {
  const TemporaryDirectory here, elsewhere;
  const auto recorder = std::make_shared<ArtifactRecorder>();
  Model model(here, false, recorder);
  model.Run();
  Model loading(elsewhere);
  const CacheKey key = KeyOf("model");
  const LayeredResult before = loading.cache.Load(key, {});
  CHECK(before.state == CacheState::kMiss);
  CHECK(before.status.message() == "outer has no entry of " + key.text);

  REQUIRE(
      PopulateCaches(recorder->Serialize(), {&loading.cache.outer(), &loading.cache.inner()}).ok());
  MemoryTrace trace;
  const LayeredResult loaded = loading.cache.Load(key, {});
  REQUIRE(loaded.status.ok());
  CHECK(loaded.outer.artifact == "wrapper");
  REQUIRE(loaded.graphs.size() == 2);
  CHECK(loaded.graphs[1].artifact == "bwd code");
  CHECK(EventsOf(trace) == Names{"inner_cache_hit", "inner_cache_hit", "outer_cache_hit"});

  REQUIRE(loading.cache.inner().Remove(KeyOf("bwd").text).ok());
  const LayeredResult missing = loading.cache.Load(key, {});
  CHECK(missing.state == CacheState::kMiss);
  CHECK(missing.status.message() == "the entry of " + key.text + " in outer names the graph " +
                                        KeyOf("bwd").text +
                                        ", of which inner has no entry whose guard holds");
  CHECK(missing.graphs.empty());
  CHECK(missing.outer.artifact.empty());
  CHECK(loading.compiled_count == 0);
}

TEST_CASE("Load says which guard does not hold, and what was not looked up", "[layered_cache]") {
  const TemporaryDirectory directory;
  LayeredCompileCache cache({.outer = {.layer = "outer", .directory = directory.string()},
                             .inner = {.layer = "inner", .directory = directory.string() + "/i"}});
  CacheEntry entry;
  entry.artifact = "code";
  entry.guard = "size > 3";
  const CacheKey key = KeyOf("guarded");
  REQUIRE(cache.outer().Put(key.text, entry).ok());
  CHECK(cache.Load(key, [](std::string_view guard) { return guard == "size > 3"; }).status.ok());
  CHECK(cache.Load(key, [](std::string_view) { return false; }).status.message() ==
        "the entry of " + key.text + " in outer has a guard that does not hold: size > 3");
  const LayeredResult bypass =
      cache.Load(key, [](std::string_view) -> bool { throw std::runtime_error("no size"); });
  CHECK(bypass.state == CacheState::kBypass);
  CHECK(bypass.status.message() ==
        "the entry of " + key.text + " in outer was not looked up: the lookup is a bypass");
}

TEST_CASE("A bundled outer entry needs no inner cache", "[layered_cache]") {
  const TemporaryDirectory directory;
  MemoryTrace trace;
  Model model(directory, true);
  CHECK(model.Run().state == CacheState::kMiss);
  const LayeredResult warm = model.Run();
  CHECK(warm.state == CacheState::kHit);
  REQUIRE(warm.graphs.size() == 2);
  CHECK(warm.graphs[0].artifact == "fwd code");
  CHECK(EventsOf(trace) == Names{"outer_cache_miss", "inner_bundled_cache_hit",
                                 "inner_bundled_cache_hit", "outer_cache_hit"});
  CHECK_FALSE(std::filesystem::exists(directory.path() / "inner"));
}

TEST_CASE("A graph that bypasses keeps the outer entry from being stored", "[layered_cache]") {
  const TemporaryDirectory directory;
  for (const bool bundled : {false, true}) {
    MemoryTrace trace;
    Model model(directory, bundled);
    model.bypass = BypassReason{"frozen", "", {}, false};
    CHECK(model.Run().state == CacheState::kBypass);
    CHECK(EventsOf(trace).back() == "outer_cache_bypass");
    CHECK(model.Run().state == CacheState::kBypass);
    CHECK(model.cache.outer().counters().hit_count == 0);
  }
}

TEST_CASE("An inner store that fails keeps the outer entry from being stored", "[layered_cache]") {
  const TemporaryDirectory directory;
  LayeredCompileCache cache({.outer = {.layer = "outer", .directory = directory.string()},
                             .inner = {.layer = "inner", .directory = "/proc/none"},
                             .bundled = false});
  for (int i = 0; i < 2; ++i) {
    const LayeredResult result =
        cache.GetOrCompile(KeyOf("m"), {}, [](LayeredCompileCache::GraphCompiler& compiler) {
          compiler.Compile(KeyOf("g"), false, [] { return CompileOutput{}; });
          return CompileOutput{};
        });
    CHECK(result.state == CacheState::kMiss);
  }
  CHECK(HeadCount(directory) == 0);
}

TEST_CASE("A bundle takes both layers to another directory", "[artifact_recorder]") {
  const TemporaryDirectory here, there;
  const std::string path = here.string() + "/all.bundle";
  const auto recorder = std::make_shared<ArtifactRecorder>();
  MemoryTrace trace;
  Model model(here, false, recorder);
  model.Run();
  model.Run();  // what is found is recorded too, and counts once
  CacheBundleInfo info = recorder->info();
  CHECK(info.entry_count == 3);
  CHECK(info.keys_by_layer["inner"].size() == 2);
  CHECK(info.keys_by_layer["outer"] == std::vector<std::string>{KeyOf("model").text});
  CHECK(recorder->Serialize() == recorder->Serialize());
  REQUIRE(recorder->Save(path).ok());

  Model elsewhere(there);
  const auto load = [&] {
    return LoadCacheBundle(path, {&elsewhere.cache.outer(), &elsewhere.cache.inner()}, &info);
  };
  REQUIRE(load().ok());
  CHECK(info.entry_count == 3);
  CHECK(info.skipped_count == 0);
  CHECK(elsewhere.Run().state == CacheState::kHit);
  CHECK(elsewhere.compiled_count == 0);

  CHECK(LoadCacheBundle(path, {&elsewhere.cache.inner()}, &info).ok());
  CHECK(info.skipped_count == 1);  // nobody took the outer entry
  int bundles = 0;
  for (const LoggedRecord& record : trace.records())
    bundles += record.IsArtifact("libtrace_cache_bundle");
  CHECK(bundles == 5);
}

TEST_CASE("A bundle can be saved automatically after each compile", "[artifact_recorder]") {
  const TemporaryDirectory directory;
  const auto recorder = std::make_shared<ArtifactRecorder>();
  const std::string path = directory.string() + "/auto.bundle";
  recorder->SetAutoSave(path);
  CompileCache cache(
      {.layer = "test", .directory = directory.string() + "/c", .recorder = recorder});
  const auto compile = [&](const char* text) {
    cache.GetOrCompile(KeyOf(text), {}, [&] { return CompileOutput{{text, "", 0, 0, {}}, {}}; });
  };
  compile("a");
  const auto first = testing::ReadText(path).size();
  CHECK(first > 0);
  compile("a");  // a hit: nothing new
  CHECK(testing::ReadText(path).size() == first);
  compile("b");
  CHECK(testing::ReadText(path).size() > first);
}

TEST_CASE("A damaged bundle is refused whole", "[artifact_recorder]") {
  const TemporaryDirectory directory;
  ArtifactRecorder recorder;
  recorder.Record("test", "taaaaaaa", {"code", "", 0, 0, {}});
  recorder.Record("test", "not a key", {"code", "", 0, 0, {}});
  const std::string bundle = recorder.Serialize();
  CompileCache cache({.layer = "test", .directory = directory.string()});
  for (size_t i = 0; i < bundle.size(); ++i) {
    std::string damaged = bundle;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    CHECK_FALSE(PopulateCaches(damaged, {&cache}).ok());
    CHECK_FALSE(PopulateCaches(std::string_view(bundle).substr(0, i), {&cache}).ok());
  }
  CHECK(HeadCount(directory) == 0);
  CacheBundleInfo info;
  CHECK(PopulateCaches(bundle, {&cache}, &info).ok());
  CHECK(info.entry_count == 1);
  CHECK(info.skipped_count == 1);  // no store takes that key
  CHECK_FALSE(LoadCacheBundle(directory.string() + "/missing", {&cache}).ok());
}

}  // namespace
}  // namespace libtrace
