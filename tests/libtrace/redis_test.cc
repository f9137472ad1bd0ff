// The remote store against a real redis-server, started by the test on a socket of its own.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "libtrace/cache/compile_cache.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

using testing::MemoryTrace;
using testing::TemporaryDirectory;

class RedisServer {
 public:
  RedisServer() : socket_(directory_.string() + "/redis.sock") {
    pid_ = fork();
    if (pid_ == 0) {
      if (freopen("/dev/null", "w", stdout) == nullptr) _exit(1);
      execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", socket_.c_str(),
             "--save", "", "--dir", directory_.path().c_str(), "--requirepass", "secret", nullptr);
      _exit(127);
    }
    // The socket is there before the server listens: ask until it answers.
    std::vector<StoredEntry> entries;
    Status status = MakeRedisStore(options())->Get("tkey", entries);
    for (int i = 0; i < 1000 && !status.ok(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      status = MakeRedisStore(options())->Get("tkey", entries);
    }
    INFO(status.message() << " (needs Debian's redis-server)");
    REQUIRE(status.ok());
  }
  ~RedisServer() { Kill(); }

  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

  RedisOptions options() const {
    RedisOptions options;
    options.unix_socket = socket_;
    options.password = "secret";
    options.timeout = std::chrono::milliseconds(2000);
    options.retry_after = std::chrono::milliseconds(50);
    return options;
  }

 private:
  TemporaryDirectory directory_;
  std::string socket_;
  pid_t pid_ = 0;
};

CacheKey KeyOf(std::string_view text) { return CacheKeyBuilder("t").Add("text", text).Build(); }

CompileCacheOptions With(const RedisServer& server, std::string directory = {}) {
  CompileCacheOptions options;
  options.layer = "test";
  options.directory = std::move(directory);
  options.remote = MakeRedisStore(server.options());
  return options;
}

TEST_CASE("What one host compiled another one finds, and keeps locally", "[redis]") {
  RedisServer server;
  const TemporaryDirectory here, there;
  MemoryTrace trace;
  const std::string artifact(300'000, '\xFE');
  CompileCache first(With(server, here.string()));
  const auto compile = [&] { return CompileOutput{{artifact, "", 0, 0, {}}, {}}; };
  CHECK(first.GetOrCompile(KeyOf("x"), {}, compile).state == CacheState::kMiss);
  CompileCache second(With(server, there.string()));
  const auto fail = []() -> CompileOutput { throw std::logic_error("must not compile"); };
  CHECK(second.GetOrCompile(KeyOf("x"), {}, fail).entry.artifact == artifact);
  CHECK(trace.records().back().payload.find("\"answered_by\": \"remote\"") != std::string::npos);
  CHECK(second.counters().remote_hit_count == 1);
  CHECK(second.GetOrCompile(KeyOf("x"), {}, fail).state == CacheState::kHit);
  CHECK(second.counters().local_hit_count == 1);
}

TEST_CASE("Guard variants of one key live side by side in Redis", "[redis]") {
  RedisServer server;
  CompileCache cache(With(server));
  for (const char* guard : {"n == 2", "n == 3"}) {
    cache.GetOrCompile(
        KeyOf("x"), [&](std::string_view text) { return text == guard; },
        [&] {
          return CompileOutput{{guard, guard, 0, 0, {}}, {}};
        });
  }
  const CacheResult result = cache.GetOrCompile(
      KeyOf("x"), [](std::string_view text) { return text == "n == 2"; },
      []() -> CompileOutput { throw std::logic_error("must not compile"); });
  CHECK(result.entry.artifact == "n == 2");
  REQUIRE(cache.Remove(KeyOf("x").text).ok());
  CHECK(cache.Find(KeyOf("x"), {}).state() == CacheState::kMiss);
}

TEST_CASE("A server that dies costs its hits and nothing else", "[redis]") {
  RedisServer server;
  CompileCache cache(With(server));
  const auto compile = [] { return CompileOutput{{"code", "", 0, 0, {}}, {}}; };
  cache.GetOrCompile(KeyOf("x"), {}, compile);
  CHECK(cache.GetOrCompile(KeyOf("x"), {}, compile).state == CacheState::kHit);
  server.Kill();
  for (int i = 0; i < 5; ++i) {
    // The first command writes to a connection that is gone: SIGPIPE must not end the process.
    CHECK(cache.GetOrCompile(KeyOf("x"), {}, compile).entry.artifact == "code");
  }
  CHECK(cache.counters().remote_error_count >= 5);
}

TEST_CASE("A wrong password and an absent server are errors, not crashes", "[redis]") {
  RedisServer server;
  RedisOptions options = server.options();
  options.password = "wrong";
  std::vector<StoredEntry> entries;
  CHECK_FALSE(MakeRedisStore(options)->Get("tkey", entries).ok());
  options.unix_socket = "/nonexistent/redis.sock";
  const Status status = MakeRedisStore(options)->Get("tkey", entries);
  CHECK(status.message().find("cannot connect to Redis") == 0);
}

TEST_CASE("A forked child opens a connection of its own", "[redis]") {
  RedisServer server;
  CompileCache cache(With(server));
  const auto compile = [] { return CompileOutput{{"code", "", 0, 0, {}}, {}}; };
  cache.GetOrCompile(KeyOf("x"), {}, compile);
  const pid_t child = fork();
  if (child == 0) {
    int hits = 0;
    for (int i = 0; i < 50; ++i) hits += cache.Find(KeyOf("x"), {}).state() == CacheState::kHit;
    _exit(hits == 50 ? 0 : 1);
  }
  for (int i = 0; i < 50; ++i) CHECK(cache.Find(KeyOf("x"), {}).state() == CacheState::kHit);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

}  // namespace
}  // namespace libtrace
