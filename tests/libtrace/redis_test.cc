// The remote store against a real redis-server.
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "libtrace/cache/compile_cache.h"
#include "tests/catch2.h"
#include "tests/libtrace/compile_output.h"
#include "tests/libtrace/redis_server.h"

namespace libtrace {
namespace {

using testing::HasProgram;
using testing::KeyOf;
using testing::MemoryTrace;
using testing::RedisServer;
using testing::TemporaryDirectory;

CompileCacheOptions With(const RedisServer& server, std::string directory = {}) {
  CompileCacheOptions options;
  options.layer = "test";
  options.directory = std::move(directory);
  options.remote = server.Store();
  return options;
}

TEST_CASE("What one host compiled another one finds, and keeps locally", "[redis]") {
  if (!HasProgram()) return;
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
  if (!HasProgram()) return;
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

TEST_CASE("A damaged entry goes away without a question for each part that it says it has",
          "[redis]") {
  if (!HasProgram()) return;
  RedisServer server;
  RedisOptions options = server.options();
  options.hmac_key_file.clear();
  options.hmac_key_variable.clear();
  options.allow_unauthenticated = true;
  CompileCache cache({.layer = "test", .remote = RedisServer::Store(options)});
  cache.GetOrCompile(KeyOf("x"), {}, [] { return CompileOutput{{"code", "", 0, 0, {}}, {}}; });
  // Its first bytes are the size of the artifact.
  const std::string name = "libtrace:" + KeyOf("x").text;
  const std::string hash = cache.Find(KeyOf("x"), {}).content_hash();
  REQUIRE(server.Ask("hset " + name + " " + hash + " 9999999999999999damaged") == "0\n");
  CHECK(cache.Find(KeyOf("x"), {}).state() == CacheState::kMiss);
  CHECK(cache.counters().damaged_count == 1);
  CHECK(server.Ask("exists " + name) == "0\n");
  CHECK(server.Ask("exists " + name + ":" + hash + ":0") == "0\n");
  const std::string stats = server.Ask("info commandstats");
  const size_t deletions = stats.find("cmdstat_del:calls=");
  REQUIRE(deletions != std::string::npos);
  CHECK(std::stoi(stats.substr(deletions + 18)) <= 10);
}

TEST_CASE("A server that dies costs its hits and nothing else", "[redis]") {
  if (!HasProgram()) return;
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
  CHECK(cache.counters().remote_error_count == 10);  // looking up, and storing
}

TEST_CASE("A lookup that the server did not answer says so", "[redis]") {
  if (!HasProgram()) return;
  RedisServer server;
  const TemporaryDirectory directory;
  CompileCache cache(With(server, directory.string()));
  const auto compile = [] { return CompileOutput{{"code", "n == 1", 0, 0, {}}, {}}; };
  const auto holds = [](std::string_view) { return true; };
  const auto fails = [](std::string_view) { return false; };
  cache.GetOrCompile(KeyOf("x"), holds, compile);
  server.Kill();
  MemoryTrace trace;
  cache.GetOrCompile(KeyOf("y"), holds, compile);
  std::string event = trace.records().back().payload;
  CHECK(event.starts_with("{\"cache_status_detailed\": \"remote_error\", "));
  CHECK(event.find("\"remote_error\": \"cannot connect to Redis at ") != std::string::npos);
  // The guard failed here, which says nothing of the entries there.
  cache.GetOrCompile(KeyOf("x"), fails, compile);
  event = trace.records().back().payload;
  CHECK(
      event.starts_with("{\"cache_status_detailed\": \"remote_error\", "
                        "\"cache_status_guard_expr\": \"n == 1\", "));
  // Nothing was removed, and the local entry needs no server.
  CHECK(cache.GetOrCompile(KeyOf("x"), holds, compile).state == CacheState::kHit);
  server.Start();
  std::this_thread::sleep_for(std::chrono::milliseconds(60));  // retry_after
  CHECK(cache.GetOrCompile(KeyOf("z"), holds, compile).state == CacheState::kMiss);
  event = trace.records().back().payload;
  CHECK(event.starts_with("{\"cache_status_detailed\": \"full_miss\", "));
}

TEST_CASE("A server that was started again is found again without a failure", "[redis]") {
  if (!HasProgram()) return;
  RedisServer server;
  const std::shared_ptr<CacheStore> store = server.Store();
  std::vector<StoredEntry> entries;
  REQUIRE(store->List("tkey", entries).ok());
  server.Kill();
  server.Start();
  CHECK(store->List("tkey", entries).ok());
}

TEST_CASE("While the server is away nobody asks it at every lookup", "[redis]") {
  RedisOptions options;
  options.unix_socket = "/nonexistent/redis.sock";
  options.allow_unauthenticated = true;
  const std::shared_ptr<CacheStore> store = RedisServer::Store(options);
  std::vector<StoredEntry> entries;
  const Status first = store->List("tkey", entries);
  CHECK(first.message() ==
        "cannot connect to Redis at /nonexistent/redis.sock: No such file or directory");
  CHECK(store->List("tkey", entries).message() == first.message());
}

TEST_CASE("Users, passwords and rights", "[redis]") {
  if (!HasProgram()) return;
  RedisServer server;
  RedisOptions options = server.options();
  std::vector<StoredEntry> entries;
  options.password = "wrong";
  CHECK(
      RedisServer::Store(options)->List("tkey", entries).message().starts_with("Redis refuses: "));
  options.username = "tracer";
  options.password = "other";
  CompileCache tracer({.layer = "test", .remote = RedisServer::Store(options)});
  const auto compile = [] { return CompileOutput{{"code", "", 0, 0, {}}, {}}; };
  CHECK(tracer.GetOrCompile(KeyOf("x"), {}, compile).is_cached);
  options.username = "reader";
  options.password = "third";
  CompileCache reader({.layer = "test", .remote = RedisServer::Store(options)});
  CHECK(reader.GetOrCompile(KeyOf("x"), {}, compile).state == CacheState::kHit);
  CHECK_FALSE(reader.GetOrCompile(KeyOf("y"), {}, compile).is_cached);
}

TEST_CASE("TLS: the server's certificate and name are checked", "[redis]") {
  if (!HasProgram() || !HasProgram("openssl")) return;
  RedisServer server(RedisServer::Kind::kTls);
  const std::string artifact(20'000'000, '\xFE');  // three pieces
  const auto compile = [&] { return CompileOutput{{artifact, "", 0, 0, {}}, {}}; };
  CompileCache first({.layer = "test", .remote = server.Store()});
  CHECK(first.GetOrCompile(KeyOf("x"), {}, compile).is_cached);
  CompileCache second({.layer = "test", .remote = server.Store()});
  CHECK(second.GetOrCompile(KeyOf("x"), {}, compile).entry.artifact == artifact);
  CHECK(second.counters().remote_hit_count == 1);

  std::vector<StoredEntry> entries;
  RedisOptions options = server.options();
  options.tls_server_name = "another.example";
  CHECK(RedisServer::Store(options)->List("tkey", entries).message() ==
        "cannot connect to Redis over TLS: hostname mismatch");
  options = server.options();
  options.tls_ca_file.clear();
  CHECK(RedisServer::Store(options)
            ->List("tkey", entries)
            .message()
            .starts_with("cannot connect to Redis over TLS: "));
  options = server.options();
  options.tls = false;  // a server that speaks TLS only
  CHECK_FALSE(RedisServer::Store(options)->List("tkey", entries).ok());
}

TEST_CASE("What was not signed with the key is not used", "[redis]") {
  if (!HasProgram()) return;
  RedisServer server;
  const auto compile = [](const char* text) {
    return [text] { return CompileOutput{{text, "", 0, 0, {}}, {}}; };
  };
  RedisOptions other = server.options();
  std::ofstream(server.directory().string() + "/other_key") << "another key, as long as that\n";
  other.hmac_key_file = server.directory().string() + "/other_key";
  CompileCache stranger({.layer = "test", .remote = RedisServer::Store(other)});
  stranger.GetOrCompile(KeyOf("x"), {}, compile("evil"));
  MemoryTrace trace;
  CompileCache cache(With(server));
  CHECK(cache.GetOrCompile(KeyOf("x"), {}, compile("good")).entry.artifact == "good");
  CHECK(trace.records().back().payload.find("have no valid signature") != std::string::npos);
  CHECK(cache.counters().remote_error_count == 1);
  // Both entries are there; each finds its own.
  CHECK(cache.GetOrCompile(KeyOf("x"), {}, compile("none")).entry.artifact == "good");
  CHECK(stranger.GetOrCompile(KeyOf("x"), {}, compile("none")).entry.artifact == "evil");
  // A signed head with another artifact, and a head under another key.
  const std::string name = "libtrace:" + KeyOf("x").text;
  for (const std::string& part : {std::string("good"), std::string("evil")}) {
    CAPTURE(part);
    CompileCache& owner = part == "good" ? cache : stranger;
    const std::string hash = owner.Find(KeyOf("x"), {}).content_hash();
    REQUIRE(server.Ask("set " + name + ":" + hash + ":0 EVIL") == "OK\n");
    const CompileCache::Lookup lookup = owner.Find(KeyOf("x"), {});
    CHECK(lookup.state() == CacheState::kMiss);
    CHECK(lookup.info().remote_error.has_value());
    CHECK(owner.counters().damaged_count == 1);
  }
  cache.GetOrCompile(KeyOf("x"), {}, compile("good"));
  REQUIRE(server.Ask("copy " + name + " libtrace:" + KeyOf("y").text) == "1\n");
  CHECK(cache.Find(KeyOf("y"), {}).state() == CacheState::kMiss);
}

TEST_CASE("A server that answers nonsense is an error", "[redis]") {
  const TemporaryDirectory directory;
  const std::vector<std::string> answers{
      "",         "$-2\r\n",         "*2000000\r\n",
      "+OK\r\n",  ":abc\r\n",        "$99999999999\r\n",
      "*1\r\n",   "$3\r\nabcde\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
      "\r\n\r\n", "?\r\n",           std::string(200'000, 'x')};
  for (size_t i = 0; i < answers.size(); ++i) {
    CAPTURE(i);
    RedisOptions options;
    options.unix_socket = directory.string() + "/" + std::to_string(i);
    options.allow_unauthenticated = true;
    options.timeout = std::chrono::milliseconds(2000);
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    options.unix_socket.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(listener, 1) == 0);
    std::thread server([&] {
      const int connection = accept(listener, nullptr, nullptr);
      char request[4096];
      [[maybe_unused]] const ssize_t count = read(connection, request, sizeof request);
      (void)send(connection, answers[i].data(), answers[i].size(), MSG_NOSIGNAL);
      close(connection);
    });
    std::vector<StoredEntry> entries;
    CHECK_FALSE(RedisServer::Store(options)->List("tkey", entries).ok());
    CHECK(entries.empty());
    server.join();
    close(listener);
  }
}

TEST_CASE("A store that cannot be had as it was asked for is an error", "[redis]") {
  std::shared_ptr<CacheStore> store;
  RedisOptions options;
  CHECK(MakeRedisStore(options, store).message() ==
        "a Redis store needs hmac_key_file or hmac_key_variable (or allow_unauthenticated)");
  options.hmac_key_variable = "LIBTRACE_TEST_HMAC_KEY";
  unsetenv("LIBTRACE_TEST_HMAC_KEY");
  CHECK_FALSE(MakeRedisStore(options, store).ok());
  setenv("LIBTRACE_TEST_HMAC_KEY", "short", 1);
  CHECK_FALSE(MakeRedisStore(options, store).ok());
  setenv("LIBTRACE_TEST_HMAC_KEY", "sixteen bytes at least", 1);
  CHECK(MakeRedisStore(options, store).ok());
  options.hmac_key_file = "/nonexistent/key";
  CHECK_FALSE(MakeRedisStore(options, store).ok());
}

TEST_CASE("A forked child opens a connection of its own", "[redis]") {
  if (!HasProgram()) return;
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

TEST_CASE("A forked child does not wait for a thread that talks to the server", "[redis]") {
  if (!HasProgram()) return;
  RedisServer server;
  RedisOptions options = server.options();
  options.timeout = std::chrono::minutes(5);
  CompileCache cache({.layer = "test", .remote = RedisServer::Store(options)});
  cache.GetOrCompile(KeyOf("x"), {}, [] { return CompileOutput{{"code", "", 0, 0, {}}, {}}; });
  server.Pause();
  std::thread asking([&] { CHECK(cache.Find(KeyOf("x"), {}).state() == CacheState::kHit); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it waits for the server now
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);  // a child that hangs dies of it
    const bool is_hit = cache.Find(KeyOf("x"), {}).state() == CacheState::kHit;
    _exit(is_hit && cache.counters().hit_count == 1 ? 0 : 1);
  }
  server.GoOn();
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  asking.join();
}

}  // namespace
}  // namespace libtrace
