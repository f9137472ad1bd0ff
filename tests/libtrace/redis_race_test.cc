// Single flight through Redis: processes that race on one key, one of them killed in the middle.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "libtrace/cache/compile_cache.h"
#include "libtrace/compile.h"
#include "tests/catch2.h"
#include "tests/libtrace/compile_output.h"
#include "tests/libtrace/keeps_errno.h"
#include "tests/libtrace/nested_compiles.h"
#include "tests/libtrace/redis_server.h"

namespace libtrace {
namespace {

using testing::FindRecord;
using testing::HasProgram;
using testing::KeyOf;
using testing::RedisServer;
using testing::TemporaryDirectory;

// A process that compiles under one key: exit status 0 if it compiled, 1 if it was served.
pid_t Compiler(const RedisOptions& options, const std::string& trace_directory, int rank,
               std::chrono::milliseconds duration) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  setenv("RANK", std::to_string(rank).c_str(), 1);
  Options trace;
  trace.directory = trace_directory;
  if (!Start(trace)) _exit(9);
  CompileCache cache({.layer = "acme_kernel", .remote = RedisServer::Store(options)});
  Frame frame;
  bool has_compiled = false;
  {
    Compile compile(frame, {.function = "forward", .file = "model.cc", .line = 12});
    cache.GetOrCompile(KeyOf("x"), {}, [&] {
      has_compiled = true;
      std::this_thread::sleep_for(duration);
      return CompileOutput{{"code", "", 0, 0, {}}, {}};
    });
  }
  Stop();
  _exit(has_compiled ? 0 : 1);
}

int StatusOf(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST_CASE("Of eight processes that start together one compiles", "[redis]") {
  if (!HasProgram()) return;
  RedisServer server;
  const TemporaryDirectory traces;
  std::vector<pid_t> children;
  for (int rank = 0; rank < 8; ++rank)
    children.push_back(
        Compiler(server.options(), traces.string(), rank, std::chrono::milliseconds(300)));
  std::vector<int> statuses;
  for (const pid_t child : children) statuses.push_back(StatusOf(child));
  std::sort(statuses.begin(), statuses.end());
  CHECK(statuses == std::vector<int>{0, 1, 1, 1, 1, 1, 1, 1});
  const std::string name = "libtrace:" + KeyOf("x").text;
  CHECK(server.Ask("hlen " + name) == "1\n");
}

TEST_CASE("A waiting process takes over from one that was killed", "[redis]") {
  if (!HasProgram()) return;
  RedisServer server;
  RedisOptions options = server.options();
  options.claim_lease = std::chrono::seconds(2);
  // The test's own directory, so that the logs can be looked at: see docs/measurements.
  const TemporaryDirectory temporary;
  const char* kept = getenv("LIBTRACE_RACE_TRACES");
  const std::string traces = kept != nullptr ? kept : temporary.string();
  const std::string claim = "get libtrace:" + KeyOf("x").text + ":claim";

  const pid_t first = Compiler(options, traces, 0, std::chrono::minutes(5));
  for (int i = 0; i < 500 && server.Ask(claim).find("compiling:") != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const pid_t second = Compiler(options, traces, 1, std::chrono::milliseconds(100));
  // Its lease is renewed for as long as it lives.
  std::this_thread::sleep_for(std::chrono::seconds(5));
  int status = 0;
  CHECK(waitpid(second, &status, WNOHANG) == 0);
  REQUIRE(kill(first, SIGKILL) == 0);
  CHECK(StatusOf(first) == -SIGKILL);
  CHECK(StatusOf(second) == 0);
  CHECK(StatusOf(Compiler(options, traces, 2, std::chrono::milliseconds(100))) == 1);

  std::string of_second, of_third;
  for (const auto& log : testing::LogsIn(traces)) {
    const auto records = testing::ParseLog(testing::ReadText(log));
    if (const auto hit = FindRecord(records, "acme_kernel_cache_hit")) of_third = hit->payload;
    if (const auto miss = FindRecord(records, "acme_kernel_cache_miss")) of_second = miss->payload;
  }
  CHECK(of_second.find("\"waited_ns\": ") != std::string::npos);
  CHECK(of_third.find("\"answered_by\": \"remote\"") != std::string::npos);
}

TEST_CASE("Compiles of several processes that need each other's keys end, with Redis", "[redis]") {
  if (!HasProgram()) return;
  RedisServer server;
  testing::CheckRings([&](const std::string& directory) {
    RedisOptions options = server.options();
    options.key_prefix = directory;  // entries of another ring are not found
    return std::make_unique<CompileCache>(
        CompileCacheOptions{.layer = "test",
                            .remote = RedisServer::Store(options),
                            .max_nested_wait = std::chrono::milliseconds(300)});
  });
}

TEST_CASE("errno survives every function of the Redis store", "[redis][errno]") {
  if (!HasProgram()) return;
  RedisServer server;
  const std::string key = KeyOf("x").text;
  const StoredEntry entry{"hash", "head", 3};
  const auto artifact = [](ChunkSink sink) { return sink("abc") ? Status() : Status::Error(""); };
  const auto take = [](std::string_view) { return true; };
  for (const bool is_alive : {true, false}) {
    if (!is_alive) server.Kill();
    RedisOptions options = server.options();
    std::shared_ptr<CacheStore> store;
    std::vector<StoredEntry> entries;
    std::unique_ptr<CacheClaim> claim;
    KEEPS_ERRNO(static_cast<void>(MakeRedisStore(std::move(options), store)));
    REQUIRE(store != nullptr);
    KEEPS_ERRNO(static_cast<void>(store->List(key, entries)));
    KEEPS_ERRNO(store->Claim(key, claim));
    KEEPS_ERRNO(if (claim) claim->Finish());
    KEEPS_ERRNO(claim.reset());
    KEEPS_ERRNO(static_cast<void>(store->Put(key, entry, artifact)));
    KEEPS_ERRNO(static_cast<void>(store->Load(key, entry, take)));
    KEEPS_ERRNO(store->Touch(key, entry.content_hash));
    KEEPS_ERRNO(static_cast<void>(store->RemoveEntry(key, entry)));
    KEEPS_ERRNO(static_cast<void>(store->Remove(key)));
    KEEPS_ERRNO(store.reset());
  }
  RedisOptions wrong;
  wrong.hmac_key_file = "/no/such/file";
  std::shared_ptr<CacheStore> none;
  KEEPS_ERRNO(static_cast<void>(MakeRedisStore(std::move(wrong), none)));
}

TEST_CASE("TLS: a server that dies in the middle of an artifact costs that entry", "[redis]") {
  if (!HasProgram() || !HasProgram("openssl")) return;
  RedisServer server(RedisServer::Kind::kTls);
  const std::string artifact(24'000'000, '\xFE');  // three pieces
  const auto compile = [&] { return testing::Output(artifact); };
  for (const int delay_ms : {1, 5, 20, 60}) {
    for (const bool is_there : {false, true}) {  // dies while it takes, and while it gives
      INFO("after " << delay_ms << " ms");
      const CacheKey key = KeyOf(std::to_string(delay_ms));
      if (is_there) {
        CompileCache first({.layer = "test", .remote = server.Store()});
        REQUIRE(first.GetOrCompile(key, {}, compile).is_cached);
      }
      CompileCache cache({.layer = "test", .remote = server.Store()});
      std::thread killer([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
        server.Kill();
      });
      CHECK(cache.GetOrCompile(key, {}, compile).entry.artifact.size() == artifact.size());
      killer.join();
      server.Start();  // empty
      CHECK(cache.GetOrCompile(key, {}, compile).entry.artifact.size() == artifact.size());
      CHECK(cache.counters().damaged_count == 0);
    }
  }
}

TEST_CASE("The thread that renews a claim gets none of the host's signals", "[redis]") {
  if (!HasProgram()) return;
  RedisServer server;
  CompileCache cache({.layer = "test", .remote = server.Store()});
  const CompileCache::Lookup compiling = cache.Find(KeyOf("x"), {});
  int thread_count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(getpid())) continue;
    ++thread_count;
    const std::string status = testing::ReadText(task.path() / "status");
    const size_t blocked = status.find("SigBlk:\t") + 8;
    const uint64_t set = std::stoull(status.substr(blocked, 16), nullptr, 16);
    CHECK((set >> (SIGTERM - 1) & 1) == 1);
  }
  CHECK(thread_count == 1);
}

TEST_CASE("What compiled but could not be kept leaves no claim to wait for", "[redis]") {
  if (!HasProgram()) return;
  RedisServer server;
  CompileCache cache({.layer = "test", .remote = server.Store()});
  CompileCache other({.layer = "test", .remote = server.Store()});
  const auto uncacheable = [] {
    CompileOutput output;
    output.bypass = BypassReason{"a host callback", "", {}, false};
    return output;
  };
  // If one of them waited for the other, minutes each time, ctest's limit would end the test.
  for (int i = 0; i < 100; ++i) {
    CHECK(cache.GetOrCompile(KeyOf("x"), {}, uncacheable).state == CacheState::kBypass);
    CHECK(other.GetOrCompile(KeyOf("x"), {}, uncacheable).state == CacheState::kBypass);
  }
  // A lookup that is given up gives its claim back.
  { const CompileCache::Lookup abandoned = cache.Find(KeyOf("y"), {}); }
  CHECK(server.Ask("exists libtrace:" + KeyOf("y").text + ":claim") == "0\n");
}

}  // namespace
}  // namespace libtrace
