// What caches promise where many share them: what an entry is, what is read when, what is kept, and
// that one of those who miss compiles.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "libtrace/cache/artifact_recorder.h"
#include "libtrace/cache/layered_cache.h"
#include "tests/catch2.h"
#include "tests/libtrace/compile_output.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::FailToCompile;
using testing::KeyOf;
using testing::MemoryTrace;
using testing::Output;
using testing::TemporaryDirectory;

// A remote store in memory that counts what is asked of it, and can stop answering.
class CountingStore : public CacheStore {
 public:
  Status List(std::string_view key, std::vector<StoredEntry>& entries) override {
    const std::lock_guard lock(mutex_);
    entries.clear();
    if (is_away) return Status::Error("the store is away");
    for (const auto& [hash, kept] : entries_[std::string(key)]) entries.push_back(kept.first);
    return {};
  }
  Status Load(std::string_view key, const StoredEntry& entry, ChunkSink sink) override {
    const std::lock_guard lock(mutex_);
    ++load_count;
    const std::string& bytes = entries_[std::string(key)].at(entry.content_hash).second;
    return sink(bytes) ? Status() : Status::Error("stopped");
  }
  Status Put(std::string_view key, const StoredEntry& entry, ArtifactSource artifact) override {
    const std::lock_guard lock(mutex_);
    if (is_away) return Status::Error("the store is away");
    std::string bytes;
    Status status = artifact([&](std::string_view chunk) {
      bytes.append(chunk);
      return true;
    });
    if (status.ok()) entries_[std::string(key)][entry.content_hash] = {entry, bytes};
    return status;
  }
  Status Remove(std::string_view) override { return ++remove_count, Status(); }
  Status RemoveEntry(std::string_view, const StoredEntry&) override {
    return ++remove_count, Status();
  }
  size_t EntryCount(const CacheKey& key) { return entries_[key.text].size(); }

  std::atomic<bool> is_away{false};
  int load_count = 0, remove_count = 0;

 private:
  std::mutex mutex_;
  std::map<std::string, std::map<std::string, std::pair<StoredEntry, std::string>>> entries_;
};

TEST_CASE("What compiling took is no part of an entry: eight cold ranks keep one copy",
          "[shared_cache]") {
  const TemporaryDirectory directory;
  const auto remote = std::make_shared<CountingStore>();
  const auto recorder = std::make_shared<ArtifactRecorder>();
  for (int rank = 0; rank < 8; ++rank) {
    // Each alone, as on a host of its own: the directory is not shared.
    CompileCache cache({.layer = "test",
                        .directory = directory.string() + "/" + std::to_string(rank),
                        .remote = remote,
                        .recorder = recorder});
    remote->is_away = true;
    CompileOutput output = Output("the same code");
    output.entry.time_taken_ns = 1000 + rank;
    output.entry.notes = {{"rank", std::to_string(rank)}};
    CompileCache::Lookup lookup = cache.Find(KeyOf("x"), {});
    remote->is_away = false;
    CHECK(lookup.Finish(output.entry).ok());
  }
  CHECK(remote->EntryCount(KeyOf("x")) == 1);
  CHECK(recorder->info().entry_count == 1);
  CompileCache late({.layer = "test", .remote = remote});
  const CacheResult result = late.GetOrCompile(KeyOf("x"), {}, FailToCompile);
  CHECK(result.entry.time_taken_ns >= 1000);
}

TEST_CASE("A bundle holds an artifact once, whatever its keys", "[shared_cache]") {
  ArtifactRecorder recorder;
  const std::string code(100'000, 'c');
  for (const char* key : {"taaa", "tbbb", "tccc"})
    recorder.Record("test", key, {code, "", 1, 0, {}});
  recorder.Record("test", "taaa", {code, "", 2, 0, {}});
  CacheBundleInfo info;
  const std::string bundle = recorder.Serialize(&info);
  CHECK(info.entry_count == 3);
  CHECK(info.size_bytes == bundle.size());
  CHECK(bundle.size() < 102'000);
  const TemporaryDirectory directory;
  CompileCache cache({.layer = "test", .directory = directory.string()});
  REQUIRE(PopulateCaches(bundle, {&cache}).ok());
  for (const char* key : {"taaa", "tbbb", "tccc"})
    CHECK(cache.Find({key, {}}, {}).entry().artifact == code);
}

TEST_CASE("An artifact is read only when its guards hold", "[shared_cache]") {
  const auto remote = std::make_shared<CountingStore>();
  CompileCache writer({.layer = "test", .remote = remote});
  for (const char* guard : {"n == 1", "n == 2", "n == 3"})
    writer.GetOrCompile(
        KeyOf("x"), [](std::string_view) { return false; }, [&] { return Output(guard, guard); });
  CHECK(remote->load_count == 0);
  CompileCache reader({.layer = "test", .remote = remote});
  CHECK(reader
            .GetOrCompile(
                KeyOf("x"), [](std::string_view guard) { return guard == "n == 2"; }, FailToCompile)
            .entry.artifact == "n == 2");
  CHECK(remote->load_count == 1);
}

TEST_CASE("Nothing is removed for guards that fail or a store that is away", "[shared_cache]") {
  const TemporaryDirectory directory;
  const auto inner_remote = std::make_shared<CountingStore>();
  const auto outer_remote = std::make_shared<CountingStore>();
  int compiled = 0;
  const auto run = [&](bool holds) {
    LayeredCompileCache cache({.outer = {.layer = "outer", .remote = outer_remote},
                               .inner = {.layer = "inner", .remote = inner_remote}});
    return cache.GetOrCompile(
        KeyOf("m"), [=](std::string_view) { return holds; },
        [&](LayeredCompileCache::GraphCompiler& compiler) {
          compiler.Compile(KeyOf("g"), false,
                           [&] { return ++compiled, Output("graph", "n == 1"); });
          return Output("outer");
        });
  };
  CHECK(run(true).state == CacheState::kMiss);
  CHECK(run(true).state == CacheState::kHit);
  CHECK(run(false).state == CacheState::kMiss);  // a guard of the inner entry
  inner_remote->is_away = true;
  MemoryTrace trace;
  CHECK(run(true).state == CacheState::kMiss);
  // The outer store answered; the store of the inner entry did not.
  bool is_reported = false;
  for (const auto& record : trace.records()) {
    is_reported |=
        record.IsArtifact("outer_cache_miss") &&
        record.payload.find("\"remote_error\": \"the store is away\"") != std::string::npos;
  }
  CHECK(is_reported);
  inner_remote->is_away = false;
  CHECK(inner_remote->remove_count + outer_remote->remove_count == 0);
  CHECK(run(true).state == CacheState::kHit);
  CHECK(compiled == 3);
}

TEST_CASE("Of the threads that miss one key one compiles", "[shared_cache]") {
  const TemporaryDirectory directory;
  for (const bool single_flight : {true, false}) {
    CompileCache cache({.layer = "test",
                        .directory = directory.string() + (single_flight ? "/1" : "/2"),
                        .single_flight = single_flight});
    std::atomic<int> compiled{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const CacheResult result = cache.GetOrCompile(KeyOf("x"), {}, [&] {
          ++compiled;
          // Without single flight all are here before the first one is done.
          while (!single_flight && compiled < 8) std::this_thread::sleep_for(milliseconds(1));
          std::this_thread::sleep_for(milliseconds(50));
          return Output("code");
        });
        wrong += result.entry.artifact != "code";
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(compiled == (single_flight ? 1 : 8));
    CHECK(wrong == 0);
    if (single_flight) CHECK(cache.counters().hit_count == 7);
  }
}

TEST_CASE("Processes that share a directory compile a key once", "[shared_cache]") {
  const TemporaryDirectory directory;
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    CompileCache cache({.layer = "test", .directory = directory.string()});
    bool has_compiled = false;
    cache.GetOrCompile(KeyOf("x"), {}, [&] {
      has_compiled = true;
      std::this_thread::sleep_for(milliseconds(200));
      return Output("code");
    });
    _exit(has_compiled ? 1 : 0);
  }
  int compiled = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    compiled += WEXITSTATUS(status);
  }
  CHECK(compiled == 1);
}

TEST_CASE("A process takes over from one that was killed while it compiled", "[shared_cache]") {
  const TemporaryDirectory directory;
  int begun[2];
  REQUIRE(pipe(begun) == 0);
  const pid_t child = fork();
  if (child == 0) {
    CompileCache cache({.layer = "test", .directory = directory.string()});
    cache.GetOrCompile(KeyOf("x"), {}, [&]() -> CompileOutput {
      [[maybe_unused]] const ssize_t written = write(begun[1], "b", 1);
      for (;;) pause();
    });
  }
  char byte = 0;
  REQUIRE(read(begun[0], &byte, 1) == 1);
  std::thread killer([child] {
    std::this_thread::sleep_for(milliseconds(100));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  });
  CompileCache cache({.layer = "test", .directory = directory.string()});
  CompileCache::Lookup lookup = cache.Find(KeyOf("x"), {});
  killer.join();
  CHECK(lookup.state() == CacheState::kMiss);
  CHECK(lookup.info().waited_ns.value_or(0) > 0);
  close(begun[0]);
  close(begun[1]);
}

TEST_CASE("Nobody waits for itself, for ever, or in turns", "[shared_cache]") {
  const TemporaryDirectory directory;
  CompileCache cache({.layer = "test", .directory = directory.string()});
  // The same key again, from inside.
  const CacheResult outer = cache.GetOrCompile(KeyOf("x"), {}, [&] {
    return Output(cache.GetOrCompile(KeyOf("x"), {}, [] { return Output("in"); }).entry.artifact);
  });
  CHECK(outer.entry.artifact == "in");

  // Two threads, each of which needs what the other one compiles.
  std::atomic<int> inside{0};
  const auto both = [&](const char* mine, const char* other) {
    cache.GetOrCompile(KeyOf(mine), {}, [&] {
      ++inside;
      while (inside < 2) std::this_thread::sleep_for(milliseconds(1));
      return Output(
          cache.GetOrCompile(KeyOf(other), {}, [] { return Output("z"); }).entry.artifact);
    });
  };
  std::thread first([&] { both("a", "b"); });
  std::thread second([&] { both("b", "a"); });
  first.join();
  second.join();

  // Longer than max_wait.
  CompileCache impatient(
      {.layer = "test", .directory = directory.string(), .max_wait = milliseconds(20)});
  const CompileCache::Lookup held = cache.Find(KeyOf("y"), {});
  std::thread third([&] {
    CHECK(impatient.GetOrCompile(KeyOf("y"), {}, [] { return Output("mine"); }).state ==
          CacheState::kMiss);
  });
  third.join();

  // What is not cacheable is compiled side by side after the first one.
  std::atomic<int> running{0}, most{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      cache.GetOrCompile(KeyOf("u"), {}, [&] {
        const int now = ++running;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        // The three that waited meet here.
        for (int k = 0; k < 2000 && most < 3; ++k) {
          std::this_thread::sleep_for(milliseconds(1));
          if (now == 1 && k > 50) break;
        }
        --running;
        CompileOutput output = Output("u");
        output.bypass = BypassReason{.reason = "host callback"};
        return output;
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(most == 3);
}

TEST_CASE("A forked child does not wait for threads that it does not have", "[shared_cache]") {
  const TemporaryDirectory directory;
  CompileCache cache({.layer = "test", .directory = directory.string()});
  const CompileCache::Lookup held = cache.Find(KeyOf("x"), {});
  const pid_t child = fork();
  if (child == 0) {
    CompileCache own({.layer = "test",
                      .directory = directory.string() + "/own",
                      .max_wait = std::chrono::minutes(5)});
    alarm(60);
    _exit(own.GetOrCompile(KeyOf("x"), {}, [] { return Output("c"); }).is_cached ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("An artifact larger than memory goes through files", "[shared_cache]") {
  const TemporaryDirectory directory;
  const uint64_t size = uint64_t{96} << 20;
  const std::string path = directory.string() + "/artifact";
  {
    std::ofstream file(path, std::ios::binary);
    const std::string block(1 << 20, 'x');
    for (int i = 0; i < 96; ++i)
      file.write(block.data(), static_cast<std::streamsize>(block.size()));
  }
  // In a process of its own, whose memory is measured.
  const pid_t child = fork();
  if (child == 0) {
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    const auto recorder = std::make_shared<ArtifactRecorder>();
    const std::string bundle = directory.string() + "/bundle";
    bool is_right = true;
    {
      CompileCache cache({.layer = "test",
                          .directory = directory.string() + "/a",
                          .recorder = recorder,
                          .artifacts_as_files = true});
      const auto compile = [&] {
        CompileOutput output;
        is_right &= ArtifactFile::Open(path, output.entry.artifact_file).ok();
        return output;
      };
      is_right &= cache.GetOrCompile(KeyOf("x"), {}, compile).is_cached;
      const CacheResult hit = cache.GetOrCompile(KeyOf("x"), {}, FailToCompile);
      is_right &= hit.entry.artifact.empty() && hit.entry.artifact_file->size_bytes() == size;
      is_right &= cache.Remove(KeyOf("x").text).ok();
      is_right &= fs::file_size(hit.entry.artifact_file->path()) == size;  // still open
      is_right &= recorder->Save(bundle).ok();
    }
    CompileCache other(
        {.layer = "test", .directory = directory.string() + "/b", .artifacts_as_files = true});
    is_right &= LoadCacheBundle(bundle, {&other}).ok();
    is_right &= other.Find(KeyOf("x"), {}).entry().artifact_file->size_bytes() == size;
    getrusage(RUSAGE_SELF, &after);
    const long grown_kib = after.ru_maxrss - before.ru_maxrss;
    _exit(!is_right ? 1 : grown_kib > 64 * 1024 ? 2 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

}  // namespace
}  // namespace libtrace
