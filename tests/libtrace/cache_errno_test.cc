// errno is the same after every public function of the caches and their files as before, whether
// the directory can be used or not.
#include <fcntl.h>

#include <filesystem>
#include <fstream>

#include "libtrace/cache/artifact_recorder.h"
#include "libtrace/cache/layered_cache.h"
#include "tests/libtrace/compile_output.h"
#include "tests/libtrace/keeps_errno.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

using testing::KeyOf;
using testing::MemoryTrace;
using testing::Output;
using testing::TemporaryDirectory;

bool AnyGuard(std::string_view) { return true; }

void CheckLookups(CompileCache& cache) {
  const CacheKey key = KeyOf("x"), other = KeyOf("y"), third = KeyOf("z");
  const auto compile = [] { return Output(std::string(100, 'c'), "n == 1"); };
  const BypassReason reason{.reason = "a host callback"};
  for (int i = 0; i < 2; ++i) KEEPS_ERRNO(cache.GetOrCompile(key, AnyGuard, compile));
  std::optional<CompileCache::Lookup> lookup;
  KEEPS_ERRNO(lookup.emplace(cache.Find(other, AnyGuard)));
  CacheEntry entry{.artifact = "code"};
  KEEPS_ERRNO(static_cast<void>(lookup->Finish(entry)));
  KEEPS_ERRNO(lookup.reset());
  KEEPS_ERRNO(lookup.emplace(cache.Find(third, AnyGuard)); lookup.reset());
  lookup.emplace(cache.Find(third, AnyGuard));
  KEEPS_ERRNO(lookup->FinishBypassed(reason));
  KEEPS_ERRNO(static_cast<void>(cache.Bypass(reason)));
  KEEPS_ERRNO(static_cast<void>(cache.StatusOfBypass(reason)));
  KEEPS_ERRNO(static_cast<void>(cache.Put(other.text, entry)));
  KEEPS_ERRNO(static_cast<void>(cache.RemoveLocal(other.text, key.text)));
  KEEPS_ERRNO(static_cast<void>(cache.Remove(other.text)));
  KEEPS_ERRNO(cache.counters());
}

TEST_CASE("errno survives every function of the caches", "[errno]") {
  const TemporaryDirectory directory;
  const MemoryTrace trace;
  for (const std::string& path : {directory.string(), std::string("/proc/none/cache")}) {
    for (const bool as_files : {false, true}) {
      CompileCacheOptions options{.layer = "test",
                                  .directory = path + (as_files ? "/f" : "/m"),
                                  .artifacts_as_files = as_files};
      std::optional<CompileCache> cache;
      KEEPS_ERRNO(cache.emplace(std::move(options)));
      CheckLookups(*cache);
      KEEPS_ERRNO(cache.reset());
    }
    LayeredCacheOptions options{.outer = {.layer = "outer", .directory = path + "/o"},
                                .inner = {.layer = "inner", .directory = path + "/i"}};
    std::optional<LayeredCompileCache> layered;
    KEEPS_ERRNO(layered.emplace(std::move(options)));
    const CacheKey model = KeyOf("m"), graph = KeyOf("g");
    const auto compile = [&](LayeredCompileCache::GraphCompiler& compiler) {
      KEEPS_ERRNO(compiler.Compile(graph, false, [] { return Output("graph"); }));
      return Output("outer");
    };
    for (int i = 0; i < 2; ++i) KEEPS_ERRNO(layered->GetOrCompile(model, AnyGuard, compile));
    KEEPS_ERRNO(layered.reset());
  }
}

TEST_CASE("errno survives every function of the local store", "[errno]") {
  const TemporaryDirectory directory;
  const std::string key = KeyOf("x").text;
  const StoredEntry entry{"hash", "head", 3};
  const auto artifact = [](ChunkSink sink) { return sink("abc") ? Status() : Status::Error(""); };
  const auto take = [](std::string_view) { return true; };
  for (std::string path : {directory.string(), std::string("/proc/none/cache")}) {
    std::optional<LocalStore> store;
    std::vector<StoredEntry> entries;
    std::unique_ptr<CacheClaim> claim;
    std::shared_ptr<const ArtifactFile> file;
    KEEPS_ERRNO(store.emplace(std::move(path), 1'000'000));
    KEEPS_ERRNO(static_cast<void>(store->List(key, entries)));
    KEEPS_ERRNO(store->Claim(key, claim));
    KEEPS_ERRNO(if (claim) claim->Finish());
    KEEPS_ERRNO(claim.reset());
    KEEPS_ERRNO(static_cast<void>(store->Put(key, entry, artifact)));
    KEEPS_ERRNO(static_cast<void>(store->List(key, entries)));
    KEEPS_ERRNO(static_cast<void>(store->Load(key, entry, take)));
    KEEPS_ERRNO(static_cast<void>(store->Open(key, entry, file)));
    KEEPS_ERRNO(file.reset());
    KEEPS_ERRNO(store->Touch(key, entry.content_hash));
    KEEPS_ERRNO(static_cast<void>(store->RemoveEntry(key, entry)));
    KEEPS_ERRNO(static_cast<void>(store->Remove(key)));
    KEEPS_ERRNO(store->stats());
    KEEPS_ERRNO(store.reset());
  }
  std::shared_ptr<CacheStore> signing;
  std::string secret(32, 'k');
  auto kept = std::make_shared<LocalStore>(directory.string(), 0);
  KEEPS_ERRNO(signing = MakeAuthenticatedStore(std::move(kept), std::move(secret)));
  std::vector<StoredEntry> entries;
  KEEPS_ERRNO(static_cast<void>(signing->Put(key, entry, artifact)));
  KEEPS_ERRNO(static_cast<void>(signing->List(key, entries)));
  KEEPS_ERRNO(signing.reset());
}

TEST_CASE("errno survives keys, entries, bundles and files", "[errno]") {
  const TemporaryDirectory directory;
  CacheKeyBuilder builder("t");
  KEEPS_ERRNO(builder.Add("name", "text").AddContent("content", "shown", "hashed"));
  KEEPS_ERRNO(builder.Build());
  const CacheEntry entry{.artifact = std::string(100, 'c'), .guard = "n == 1"};
  std::string bytes;
  CacheEntry decoded;
  KEEPS_ERRNO(bytes = EncodeCacheEntry(entry));
  KEEPS_ERRNO(static_cast<void>(DecodeCacheEntry(bytes, decoded)));

  CompileCache cache({.layer = "test", .directory = directory.string() + "/cache"});
  const std::vector<CompileCache*> caches{&cache};
  for (const std::string& path : {directory.string() + "/bundle", std::string("/proc/none/b")}) {
    std::optional<ArtifactRecorder> recorder;
    KEEPS_ERRNO(recorder.emplace());
    KEEPS_ERRNO(recorder->Record("test", "tkey", entry));
    KEEPS_ERRNO(recorder->info());
    std::string bundle;
    KEEPS_ERRNO(bundle = recorder->Serialize());
    KEEPS_ERRNO(static_cast<void>(recorder->Save(path)));
    KEEPS_ERRNO(static_cast<void>(PopulateCaches(bundle, caches)));
    KEEPS_ERRNO(static_cast<void>(LoadCacheBundle(path, caches)));
    std::string auto_save = path;
    KEEPS_ERRNO(recorder->SetAutoSave(std::move(auto_save)));
    KEEPS_ERRNO(recorder->Clear(); recorder.reset());
  }
  std::shared_ptr<const ArtifactFile> file;
  const std::string there = directory.string() + "/bundle", none = directory.string() + "/none";
  KEEPS_ERRNO(static_cast<void>(ArtifactFile::Open(there, file)); file.reset());
  KEEPS_ERRNO(static_cast<void>(ArtifactFile::Open(none, file)));
  const int fd = open("/", O_RDONLY | O_CLOEXEC);
  KEEPS_ERRNO(static_cast<void>(ArtifactFile::FromDescriptor(fd, file)));
}

}  // namespace
}  // namespace libtrace
