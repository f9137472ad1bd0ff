#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <stdexcept>
#include <thread>

#include "libtrace/cache/compile_cache.h"
#include "tests/catch2.h"
#include "tests/libtrace/compile_output.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

namespace fs = std::filesystem;
using testing::FailToCompile;
using testing::FindRecord;
using testing::KeyOf;
using testing::LoggedRecord;
using testing::MemoryTrace;
using testing::Output;
using testing::TemporaryDirectory;

TEST_CASE("A key is a letter and 51 base32 characters over named components", "[cache_key]") {
  const CacheKey key =
      CacheKeyBuilder("f").Add("gm", "a\nb").Add("config[freezing]", "False").Build();
  CHECK(std::regex_match(key.text, std::regex("f[a-z2-7]{51}")));
  REQUIRE(key.components.size() == 2);
  // SHA-256 of "False" in base32, by `printf False | openssl sha256 -binary | base32`.
  CHECK(key.components[1] ==
        "[mcrt43hvcups2uxn3luwqxh2e4ccnkuj3dn4px5ykrqg6hi2id7] config[freezing]: False");
  CHECK(key.components[0].ends_with("] gm: a\nb"));
}

TEST_CASE("Every part of a component is part of the key", "[cache_key]") {
  const std::string base = CacheKeyBuilder("f").Add("a", "1").Add("b", "2").Build().text;
  CHECK(CacheKeyBuilder("f").Add("a", "1").Add("b", "2").Build().text == base);
  CHECK(CacheKeyBuilder("f").Add("b", "2").Add("a", "1").Build().text != base);
  CHECK(CacheKeyBuilder("f").Add("a", "1").Add("c", "2").Build().text != base);
  CHECK(CacheKeyBuilder("f").Add("a", "1").Add("b", "3").Build().text != base);
  CHECK(CacheKeyBuilder("f").Add("a", "1").Build().text != base);
  // Only the content counts, the text is for people.
  const std::string content = CacheKeyBuilder("f").AddContent("w", "weights", "xyz").Build().text;
  CHECK(CacheKeyBuilder("f").AddContent("w", "other words", "xyz").Build().text == content);
}

TEST_CASE("Component names are made to fit the grammar", "[cache_key]") {
  const auto name = [](std::string_view text) {
    const std::string line = CacheKeyBuilder("f").Add(text, "v").Build().components[0];
    return line.substr(54, line.size() - 54 - 3);
  };
  CHECK(name("a b.c") == "a_b_c");
  CHECK(name("in[0]") == "in[0]");
  CHECK(name("in[a.b c]") == "in[a.b c]");
  CHECK(name("in[x[1]]") == "in[x_1_]");
  CHECK(name("") == "_");
}

TEST_CASE("An entry survives coding, and damage is noticed", "[cache_entry]") {
  const CacheEntry entry{std::string("\0\xFFz", 3), "n == 2", 5, 2, {{"k", "v"}}, {}, {{"a", "b"}}};
  const std::string bytes = EncodeCacheEntry(entry);
  CacheEntry decoded;
  REQUIRE(DecodeCacheEntry(bytes, decoded).ok());
  CHECK(decoded.artifact == entry.artifact);
  CHECK(decoded.guard == "n == 2");
  CHECK(decoded.time_taken_ns == 5);
  CHECK(decoded.backward_time_taken_ns == 2);
  CHECK(decoded.properties == entry.properties);
  CHECK(decoded.notes == entry.notes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    CHECK_FALSE(DecodeCacheEntry(damaged, decoded).ok());
    CHECK_FALSE(DecodeCacheEntry(std::string_view(bytes).substr(0, i), decoded).ok());
  }
}

TEST_CASE("A miss compiles and stores, the next lookup hits, another process too", "[cache]") {
  const TemporaryDirectory directory;
  const CompileCacheOptions options{.layer = "test", .directory = directory.string()};
  MemoryTrace trace;
  {
    CompileCache cache(options);
    const CacheResult result = cache.GetOrCompile(KeyOf("x"), {}, [] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      return Output("code");
    });
    CHECK(result.state == CacheState::kMiss);
    CHECK(result.is_cached);
    CHECK(cache.GetOrCompile(KeyOf("x"), {}, FailToCompile).entry.artifact == "code");
    CHECK(cache.counters().time_saved_ns >= 2'000'000);
  }
  CompileCache later(options);
  CHECK(later.GetOrCompile(KeyOf("x"), {}, FailToCompile).entry.artifact == "code");
  CHECK(later.counters().local_hit_count == 1);
  const std::vector<LoggedRecord> records = trace.records();
  const LoggedRecord miss = *FindRecord(records, "test_cache_miss");
  CHECK(miss.payload.starts_with("{\"cache_status_detailed\": \"full_miss\", \"key\": \"" +
                                 KeyOf("x").text + "\", \"components\": [\"["));
  CHECK(std::regex_search(miss.payload, std::regex(R"re("time_taken_ns": \d{7,})re")));
  const LoggedRecord hit = *FindRecord(records, "test_cache_hit");
  CHECK(std::regex_search(hit.payload, std::regex(R"re("time_saved_ns": \d{7,})re")));
  CHECK(hit.payload.find("\"answered_by\": \"local\"") != std::string::npos);
}

TEST_CASE("Guards decide between the entries of one key", "[cache]") {
  const TemporaryDirectory directory;
  MemoryTrace trace;
  CompileCache cache({.layer = "test", .directory = directory.string()});
  const auto holds = [](std::string_view wanted) {
    return [wanted](std::string_view guard) { return guard == wanted; };
  };
  const auto compile = [&](const char* artifact, const char* guard) {
    return cache.GetOrCompile(KeyOf("x"), holds(guard), [&] { return Output(artifact, guard); });
  };
  compile("two", "n == 2");
  CHECK(compile("three", "n == 3").state == CacheState::kMiss);
  const LoggedRecord miss = trace.records().back();
  CHECK(miss.payload.starts_with(
      R"({"cache_status_detailed": "guard_miss", "cache_status_guard_expr": "n == 2")"));
  CHECK(cache.GetOrCompile(KeyOf("x"), holds("n == 2"), FailToCompile).entry.artifact == "two");
  CHECK(cache.GetOrCompile(KeyOf("x"), holds("n == 3"), FailToCompile).entry.artifact == "three");
  CHECK(cache.counters().guard_miss_count == 1);
  // Without somebody to ask, a guard does not hold.
  CHECK(cache.GetOrCompile(KeyOf("x"), {}, [] { return Output("any"); }).state ==
        CacheState::kMiss);
}

TEST_CASE("A guard that throws is a bypass, and an error in strict mode", "[cache]") {
  const TemporaryDirectory directory;
  MemoryTrace trace;
  const auto throws = [](std::string_view) -> bool { throw std::runtime_error("no shape env"); };
  for (const bool strict : {false, true}) {
    CompileCache cache({.layer = "test", .directory = directory.string(), .strict = strict});
    REQUIRE(cache.Put(KeyOf("x").text, {"a", "guard", 0, 0, {}}).ok());
    bool was_compiled = false;
    const CacheResult result = cache.GetOrCompile(KeyOf("x"), throws, [&] {
      was_compiled = true;
      return Output("b");
    });
    CHECK(result.state == CacheState::kBypass);
    CHECK(result.status.ok() == !strict);
    CHECK(was_compiled == !strict);
  }
  const LoggedRecord bypass = *FindRecord(trace.records(), "test_cache_bypass");
  CHECK(bypass.payload.find(R"("cache_bypass_reason": "no shape env")") != std::string::npos);
  CHECK(bypass.payload.find(R"("cache_bypass_hard_exception": true)") != std::string::npos);
}

TEST_CASE("Something uncacheable bypasses with its reason and is not stored", "[cache]") {
  const TemporaryDirectory directory;
  MemoryTrace trace;
  CompileCache cache({.layer = "test", .directory = directory.string()});
  for (int i = 0; i < 2; ++i) {
    const CacheResult result = cache.GetOrCompile(KeyOf("x"), {}, [] {
      CompileOutput output = Output("frozen");
      output.bypass = BypassReason{"Skipping graph with frozen constants", "", {}, false};
      return output;
    });
    CHECK(result.state == CacheState::kBypass);
    CHECK(result.entry.artifact == "frozen");
    CHECK_FALSE(result.is_cached);
  }
  CHECK(cache.counters().bypass_count == 2);
  CHECK_FALSE(FindRecord(trace.records(), "test_cache_miss"));
  CompileCache strict({.layer = "test", .strict = true});
  CHECK_FALSE(strict.Bypass({"reason", "", {}, false}).ok());
}

TEST_CASE("What compiling throws goes to the caller, after a miss", "[cache]") {
  const TemporaryDirectory directory;
  MemoryTrace trace;
  CompileCache cache({.layer = "test", .directory = directory.string()});
  CHECK_THROWS_AS(cache.GetOrCompile(KeyOf("x"), {}, FailToCompile), std::logic_error);
  CHECK(FindRecord(trace.records(), "test_cache_miss"));
  CHECK(cache.counters().miss_count == 1);
}

TEST_CASE("A cache that is off compiles every time and leaves instants only", "[cache]") {
  MemoryTrace trace;
  CompileCache cache({.layer = "test", .enabled = false});
  CHECK(cache.GetOrCompile(KeyOf("x"), {}, [] { return Output("a"); }).state ==
        CacheState::kDisabled);
  const std::vector<LoggedRecord> records = trace.records();
  for (const LoggedRecord& record : records) CHECK_FALSE(record.Has("test_cache"));
  bool has_instant = false;
  for (const LoggedRecord& record : records) {
    has_instant |= record.payload.find("\"name\": \"test_cache_disabled\"") != std::string::npos;
  }
  CHECK(has_instant);
}

TEST_CASE("An entry of another version of the library is a miss and stays", "[local_store]") {
  const TemporaryDirectory directory;
  const CacheKey key = CacheKeyBuilder("t").Add("text", "x").Build();
  CompileCache cache({.layer = "test", .directory = directory.string()});
  LocalStore store(directory.string(), 0);
  const StoredEntry other{"other_version", "libtrace cache head 1\nwhatever", 4};
  REQUIRE(store
              .Put(key.text, other,
                   [](ChunkSink sink) {
                     sink("code");
                     return Status();
                   })
              .ok());
  CHECK(cache.Find(key, {}).state() == CacheState::kMiss);
  CHECK(cache.counters().damaged_count == 0);
  std::vector<StoredEntry> entries;
  REQUIRE(store.List(key.text, entries).ok());
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].content_hash == other.content_hash);
}

TEST_CASE("A damaged entry is a miss and goes away", "[local_store]") {
  const TemporaryDirectory directory;
  CompileCache cache({.layer = "test", .directory = directory.string()});
  cache.GetOrCompile(KeyOf("x"), {}, [] { return Output("code"); });
  fs::path entry;
  for (const auto& file : fs::recursive_directory_iterator(directory.path())) {
    if (file.path().extension() == ".head") entry = fs::path(file.path()).replace_extension();
  }
  const std::string key = KeyOf("x").text;
  CHECK(entry.parent_path() == directory.path() / key.substr(1, 2) / key);
  std::fstream(entry, std::ios::in | std::ios::out).write("X", 1);
  CHECK(cache.GetOrCompile(KeyOf("x"), {}, [] { return Output("again"); }).state ==
        CacheState::kMiss);
  CHECK(cache.counters().damaged_count == 1);
  CHECK(cache.GetOrCompile(KeyOf("x"), {}, FailToCompile).entry.artifact == "again");
}

TEST_CASE("A directory in the place of a cache file is replaced", "[local_store]") {
  for (const char* extension : {".head", ""}) {
    INFO(extension);
    const TemporaryDirectory directory;
    CompileCache cache({.layer = "test", .directory = directory.string()});
    cache.GetOrCompile(KeyOf("x"), {}, [] { return Output("code"); });
    fs::path head;
    for (const auto& file : fs::recursive_directory_iterator(directory.path())) {
      if (file.path().extension() == ".head") head = file.path();
    }
    const fs::path damaged = fs::path(head).replace_extension(extension);
    REQUIRE(fs::remove(damaged));
    REQUIRE(fs::create_directories(damaged / "with" / "content"));
    CHECK(cache.GetOrCompile(KeyOf("x"), {}, [] { return Output("code"); }).is_cached);
    CHECK(cache.GetOrCompile(KeyOf("x"), {}, FailToCompile).entry.artifact == "code");
  }
}

TEST_CASE("The least recently used entries go when the limit is reached", "[local_store]") {
  const TemporaryDirectory directory;
  LocalStore store(directory.string(), 10'000);
  CompileCache cache({.layer = "test", .directory = directory.string(), .max_size_bytes = 10'000});
  const auto key = [](int i) { return KeyOf(std::to_string(i)); };
  const auto compile = [](int i) { return Output(std::string(1000, static_cast<char>('a' + i))); };
  for (int i = 0; i < 7; ++i) cache.GetOrCompile(key(i), {}, [&] { return compile(i); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(cache.GetOrCompile(key(0), {}, FailToCompile).state == CacheState::kHit);  // used: stays
  for (int i = 7; i < 12; ++i) cache.GetOrCompile(key(i), {}, [&] { return compile(i); });
  uint64_t size_bytes = 0;
  for (const auto& file : fs::recursive_directory_iterator(directory.path())) {
    if (file.is_regular_file()) size_bytes += file.file_size();
  }
  CHECK(size_bytes <= 10'000);
  std::vector<StoredEntry> entries;
  CHECK(store.List(key(0).text, entries).ok());
  CHECK(entries.size() == 1);
  CHECK(store.List(key(1).text, entries).ok());
  CHECK(entries.empty());
  // Too large for the cache altogether: compiled, not kept.
  const CacheResult result =
      cache.GetOrCompile(key(99), {}, [] { return Output(std::string(20'000, 'x')); });
  CHECK(result.entry.artifact.size() == 20'000);
  CHECK_FALSE(result.is_cached);
}

TEST_CASE("A store that cannot write costs the entry, not the compile", "[local_store]") {
  CompileCache cache({.layer = "test", .directory = "/proc/none"});
  const CacheResult result = cache.GetOrCompile(KeyOf("x"), {}, [] { return Output("code"); });
  CHECK(result.entry.artifact == "code");
  CHECK_FALSE(result.is_cached);
  CHECK(cache.counters().store_error_count == 1);
}

TEST_CASE("Keys that are paths are refused", "[local_store]") {
  const TemporaryDirectory directory;
  LocalStore store(directory.string(), 0);
  for (const char* key : {"../../../etc/x", "a/b/c/d", "", "abc", ".hidden.."}) {
    CHECK_FALSE(store.Put(key, {"h", "b", 0}, [](ChunkSink) { return Status(); }).ok());
  }
  for (const char* hash : {"../x", "", "a/b", "a.head"}) {
    CHECK_FALSE(store.Put("taaa", {hash, "b", 0}, [](ChunkSink) { return Status(); }).ok());
  }
}

TEST_CASE("Processes and threads share a directory", "[local_store]") {
  const TemporaryDirectory directory;
  const auto work = [&] {
    CompileCache cache(
        {.layer = "test", .directory = directory.string(), .max_size_bytes = 30'000});
    int wrong = 0;
    for (int i = 0; i < 150; ++i) {
      const std::string text(static_cast<size_t>(500 + i % 20), static_cast<char>('a' + i % 20));
      const CacheResult result =
          cache.GetOrCompile(KeyOf(std::to_string(i % 20)), {}, [&] { return Output(text); });
      wrong += result.entry.artifact != text;
    }
    return wrong + static_cast<int>(cache.counters().damaged_count);
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    children.push_back(fork());
    if (children.back() == 0) _exit(work());
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { wrong += work(); });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
}

TEST_CASE("A lookup in steps can be finished later, or not at all", "[cache]") {
  const TemporaryDirectory directory;
  MemoryTrace trace;
  CompileCache cache({.layer = "test", .directory = directory.string()});
  {
    CompileCache::Lookup lookup = cache.Find(KeyOf("x"), {});
    CompileCache::Lookup moved = std::move(lookup);
    CacheEntry entry;
    entry.artifact = "code";
    CHECK(moved.Finish(entry).ok());
    CHECK(entry.time_taken_ns > 0);
  }
  { const CompileCache::Lookup abandoned = cache.Find(KeyOf("y"), {}); }
  CHECK(cache.Find(KeyOf("x"), {}).entry().artifact == "code");
  int misses = 0;
  for (const LoggedRecord& record : trace.records()) misses += record.IsArtifact("test_cache_miss");
  CHECK(misses == 2);
}

}  // namespace
}  // namespace libtrace
