// What the caches promise about strictness, what an event of a failed lookup holds, whose file its
// prefix names, and that a killed process holds no claim.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>

#include "libtrace/cache/layered_cache.h"
#include "tests/catch2.h"
#include "tests/libtrace/compile_output.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

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
