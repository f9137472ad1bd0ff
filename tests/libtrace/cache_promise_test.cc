// What the caches promise about strictness, what an event of a failed lookup holds, whose file its
// prefix names, and that a killed process holds no claim.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "libtrace/cache/artifact_recorder.h"
#include "libtrace/cache/layered_cache.h"
#include "tests/catch2.h"
#include "tests/libtrace/compile_output.h"
#include "tests/libtrace/log_text.h"
#include "tests/libtrace/sanitizer.h"

namespace libtrace {
namespace {

using namespace std::chrono_literals;  // NOLINT: 20s
using testing::FindRecord;
using testing::KeyOf;
using testing::LoggedRecord;
using testing::MemoryTrace;
using testing::TemporaryDirectory;

CacheKey SomeKey(const char* prefix) { return CacheKeyBuilder(prefix).Add("a", "1").Build(); }
bool Holds(std::string_view) { return true; }  // a plain function is a guard check too

CompileOutput Bypassing() {
  CompileOutput output;
  output.entry.artifact = "x";
  output.bypass = BypassReason{.reason = "host callback"};
  return output;
}

TEST_CASE("In strict mode a bypass by the callback is an error", "[cache]") {
  const TemporaryDirectory directory;
  CompileCache cache({.layer = "s", .directory = directory.string() + "/s", .strict = true});
  const CacheResult result = cache.GetOrCompile(SomeKey("k"), Holds, Bypassing);
  CHECK(result.state == CacheState::kBypass);
  CHECK(result.status.message() == "compile cache `s` bypassed in strict mode: host callback");
  CHECK(result.entry.artifact.empty());
  CompileCache::Lookup lookup = cache.Find(SomeKey("k"), Holds);
  lookup.FinishBypassed({.reason = "by hand"});
  CHECK_FALSE(lookup.status().ok());
  CHECK_FALSE(cache.Bypass({.reason = "before"}).ok());

  CompileCache lenient({.layer = "l", .directory = directory.string() + "/l"});
  const CacheResult allowed = lenient.GetOrCompile(SomeKey("k"), Holds, Bypassing);
  CHECK(allowed.status.ok());
  CHECK(allowed.entry.artifact == "x");
}

TEST_CASE("In strict mode a graph's bypass is an error of the whole compile", "[cache]") {
  const TemporaryDirectory directory;
  for (const bool bundled : {false, true}) {
    LayeredCompileCache cache(
        {.outer = {.layer = "o", .directory = directory.string() + "/o"},
         .inner = {.layer = "i", .directory = directory.string() + "/i", .strict = true},
         .bundled = bundled});
    const LayeredResult result =
        cache.GetOrCompile(SomeKey("k"), Holds, [](LayeredCompileCache::GraphCompiler& compiler) {
          const CacheResult graph = compiler.Compile(SomeKey("g"), false, Bypassing);
          CHECK_FALSE(graph.status.ok());
          return CompileOutput{.entry = {.artifact = "outer"}};
        });
    CHECK(result.state == CacheState::kBypass);
    CHECK(result.status.message() == "compile cache `i` bypassed in strict mode: host callback");
    CHECK(result.outer.artifact.empty());
  }
}

TEST_CASE("The event of a guard that throws has key, components, type and the caller's file",
          "[cache]") {
  const TemporaryDirectory directory;
  CompileCache cache({.layer = "g", .directory = directory.string()});
  const CacheKey key = SomeKey("k");
  (void)cache.GetOrCompile(
      key, Holds, [] { return CompileOutput{.entry = {.artifact = "x", .guard = "n == 1"}}; });
  MemoryTrace trace;
  const auto throws = [](std::string_view) -> bool { throw std::out_of_range("no such symbol"); };
  const CacheResult result =
      cache.GetOrCompile(key, throws, [] { return CompileOutput{.entry = {.artifact = "y"}}; });
  CHECK(result.state == CacheState::kBypass);
  const auto event = FindRecord(trace.records(), "g_cache_bypass");
  REQUIRE(event);
  CHECK(event->prefix.find("cache_promise_test.cc:") != std::string::npos);
  for (const std::string& part : {std::string("no such symbol"), std::string("std::out_of_range"),
                                  key.text, key.components.at(0)}) {
    CHECK(event->payload.find(part) != std::string::npos);
  }
}

TEST_CASE("Claims that are links to one file are nobody's", "[local_store]") {
  const TemporaryDirectory directory;
  CompileCache cache({.layer = "c", .directory = directory.string(), .max_wait = 20s});
  std::vector<std::string> keys{SomeKey("k").text, SomeKey("m").text};
  std::sort(keys.begin(), keys.end());
  for (const std::string& key : keys) {
    const auto folder = directory.path() / key.substr(1, 2) / key;
    std::filesystem::create_directories(folder);
    std::filesystem::create_symlink("/dev/zero", folder / ".claim");
  }
  const auto begin = std::chrono::steady_clock::now();
  cache.GetOrCompile({keys[0], {}}, Holds, [&] {
    cache.GetOrCompile({keys[1], {}}, Holds, [] { return CompileOutput{}; });
    return CompileOutput{};
  });
  CHECK(std::chrono::steady_clock::now() - begin < 10s);
}

// A child hangs in AddressSanitizer's allocator if another thread held its lock at the fork.
#ifndef LIBTRACE_TEST_SANITIZER
TEST_CASE("A forked child has a recorder of its own, whatever its parent's threads do", "[fork]") {
  const TemporaryDirectory directory;
  const auto recorder = std::make_shared<ArtifactRecorder>();
  recorder->SetAutoSave(directory.string() + "/bundle");
  std::atomic<bool> is_done{false};
  std::thread recording([&] {
    while (!is_done) recorder->Record("r", "tkey", {.artifact = std::string(1000, 'c')});
  });
  int hung_count = 0;
  for (int i = 0; i < 50 && hung_count == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      CompileCache cache({.layer = "r",
                          .directory = directory.string() + "/" + std::to_string(i),
                          .recorder = recorder});
      cache.GetOrCompile(SomeKey("k"), Holds,
                         [] { return CompileOutput{.entry = {.artifact = "x"}}; });
      _exit(recorder->info().entry_count == 1 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    hung_count += status != 0;
  }
  is_done = true;
  recording.join();
  CHECK(hung_count == 0);
  CHECK_FALSE(std::filesystem::exists(directory.string() + "/bundle"));
  CHECK(recorder->info().entry_count == 1);
}

TEST_CASE("Children that are forked in another thread's first lookup do not hang", "[fork]") {
  const TemporaryDirectory directory;
  // Runs in a new process each time: only the first lookup of a process is tested.
  const auto fork_after = [&](int spin_count, const std::string& folder) {
    CompileCache cache({.layer = "f", .directory = folder});
    const auto look_up = [&cache](const char* prefix) {
      cache.GetOrCompile(SomeKey(prefix), Holds, [] { return CompileOutput{}; });
    };
    std::atomic<bool> is_begun{false};
    std::thread first([&] {
      is_begun = true;
      look_up("k");
    });
    while (!is_begun) {
    }
    for (std::atomic<int> spins{0}; spins < spin_count; ++spins) {
    }
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      look_up("m");
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    first.join();
    return status == 0 ? 0 : 1;
  };
  int hung_count = 0;
  for (int i = 0; i < 1000 && hung_count == 0; ++i) {
    const pid_t process = fork();
    if (process == 0)
      _exit(fork_after(i * 97 % 6'000, directory.string() + "/" + std::to_string(i)));
    int status = 0;
    waitpid(process, &status, 0);
    hung_count += status != 0;
  }
  CHECK(hung_count == 0);
}
#endif

TEST_CASE("A pipe in the place of an entry's file is not waited for", "[local_store]") {
  for (const bool is_head : {false, true}) {
    const TemporaryDirectory directory;
    CompileCache cache({.layer = "p", .directory = directory.string()});
    const auto compile = [] { return CompileOutput{.entry = {.artifact = "code"}}; };
    cache.GetOrCompile(SomeKey("k"), Holds, compile);
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::recursive_directory_iterator(directory.path())) {
      const bool is_entry = file.is_regular_file() && file.path().filename() != ".claim";
      if (is_entry && (file.path().extension() == ".head") == is_head) files.push_back(file.path());
    }
    REQUIRE(files.size() == 1);
    REQUIRE(unlink(files[0].c_str()) == 0);
    REQUIRE(mkfifo(files[0].c_str(), 0666) == 0);
    CHECK(cache.GetOrCompile(SomeKey("k"), Holds, compile).state == CacheState::kMiss);
    CHECK(cache.GetOrCompile(SomeKey("k"), Holds, compile).state == CacheState::kHit);
  }
}

TEST_CASE("A child that outlives a killed process does not hold its claim", "[shared_cache]") {
  const TemporaryDirectory directory;
  int begun[2], ended[2];
  REQUIRE(pipe(begun) == 0);
  REQUIRE(pipe(ended) == 0);
  const pid_t process = fork();
  if (process == 0) {
    CompileCache cache({.layer = "test", .directory = directory.string()});
    cache.GetOrCompile(KeyOf("x"), {}, [&]() -> CompileOutput {
      if (fork() == 0) {  // lives until the test ends
        close(ended[1]);
        char byte = 0;
        (void)!write(begun[1], "b", 1);
        (void)!read(ended[0], &byte, 1);
        _exit(0);
      }
      for (;;) pause();
    });
  }
  char byte = 0;
  REQUIRE(read(begun[0], &byte, 1) == 1);
  LocalStore store(directory.string(), 0);
  std::unique_ptr<CacheClaim> claim;
  CHECK(store.Claim(KeyOf("x").text, claim) == ClaimState::kHeld);
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
  CHECK(store.Claim(KeyOf("x").text, claim) == ClaimState::kGranted);
  for (const int fd : {begun[0], begun[1], ended[0], ended[1]}) close(fd);
}

}  // namespace
}  // namespace libtrace
