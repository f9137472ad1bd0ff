// CompileCache: a cache of compiled artifacts of any kind, which emits the result of every lookup
// and its reason.
//
// Modelled on PyTorch's FxGraphCache (torch/_inductor/codecache.py): a key over named components
// finds entries, of which the first whose guards hold is a hit. Every lookup gives one cache event
// (libtrace/artifacts/cache_event.h) named after the layer. For two layers see layered_cache.h.
//
//   libtrace::CompileCache cache({.layer = "libtrace_model", .directory = "/var/cache/models"});
//   libtrace::CacheResult result = cache.GetOrCompile(key, check_guard, [&] {
//     return libtrace::CompileOutput{.entry = {.artifact = Compile(model)}};
//   });
//   Run(result.entry.artifact);
//
// Works the same when tracing is off. Thread-safe; no lock is held while callbacks run. A store that
// fails costs the cached entry, never the compile, and no entry is removed but one that is damaged.
// A forked child may use its parent's cache: it gets new locks, new counters and a new connection.
//
// Single flight: if threads and processes that share a store miss one key at the same time, one
// compiles and the others wait until it has stored the entry; the events of those have waited_ns.
// If the process that compiles ends, a waiting one takes over (with Redis, after
// RedisOptions::claim_lease). A lookup waits for at most one compile: if the entry is not stored
// after it (uncacheable, other guards), those that waited compile concurrently. A lookup by a thread
// that compiles another key does not wait in a circle: in this process it compiles at once, for
// another process it waits for max_nested_wait if that could wait for this one. Lookups that other
// threads make for a compile are not seen to be nested in it. A lookup that has given up waiting says
// so in its event (wait_given_up).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libtrace/artifacts/cache_event.h"
#include "libtrace/cache/cache_key.h"
#include "libtrace/cache/cache_store.h"
#include "libtrace/call_site.h"
#include "libtrace/export.h"
#include "libtrace/function_ref.h"
#include "libtrace/status.h"

namespace libtrace LIBTRACE_EXPORT {

class ArtifactRecorder;
namespace detail {
class Flight;
}

struct CacheEntry {
  std::string artifact{};  // empty if artifact_file is set
  // Condition under which the artifact may be used, in words of the caller's; "" = always.
  std::string guard{};
  int64_t time_taken_ns = 0;           // what compiling took; filled in by GetOrCompile
  int64_t backward_time_taken_ns = 0;  // outer layers: the part of it for the backward graph
  // Any data that belongs to the artifact: names of kernels, keys of inner entries.
  std::vector<std::pair<std::string, std::string>> properties{};
  // The artifact, if it is too large for a string. The result of compiling may have either; for a
  // hit it is set if CompileCacheOptions::artifacts_as_files is.
  std::shared_ptr<const ArtifactFile> artifact_file{};
  // Measurements and remarks. Like the times they are kept with the entry, and are no part of its
  // identity: entries that differ in nothing else are one entry, with the notes of the first.
  std::vector<std::pair<std::string, std::string>> notes{};
};

// Whether `guard` holds now. Called before the artifact is read, and again after waiting for
// another compile; not called for "". If it throws, the lookup is a bypass.
using GuardCheck = FunctionRef<bool(std::string_view guard)>;

struct BypassReason {
  std::string reason{};          // one sentence, stable: people count them
  std::string exception_type{};  // "" = none
  std::vector<std::string> traceback{};
  bool is_unexpected = false;  // a failure rather than something declared uncacheable
};

struct CompileOutput {
  CacheEntry entry{};
  std::optional<BypassReason> bypass{};  // set: what was compiled must not be cached
};

struct CacheResult {
  CacheState state = CacheState::kMiss;
  CacheEntry entry{};
  bool is_cached = false;      // a store has the entry now
  std::string content_hash{};  // of the entry; "" if it was not cached
  // Not ok: a bypass in strict mode (CompileCacheOptions::strict), also one that the compile callback
  // requested; the entry is then empty.
  Status status{};
};

struct CacheCounters {
  uint64_t hit_count = 0;
  uint64_t miss_count = 0;  // guard misses included
  uint64_t guard_miss_count = 0;
  uint64_t bypass_count = 0;
  uint64_t disabled_count = 0;  // lookups while switched off
  uint64_t local_hit_count = 0;
  uint64_t local_miss_count = 0;
  uint64_t remote_hit_count = 0;
  uint64_t remote_miss_count = 0;
  uint64_t remote_error_count = 0;  // did not answer, or gave an entry that must not be used
  uint64_t store_error_count = 0;   // entries that could not be kept locally
  uint64_t damaged_count = 0;       // entries found damaged and removed
  int64_t time_saved_ns = 0;
};

struct CompileCacheOptions {
  // Name of the layer in events; yours, with a prefix: `libtrace_model`, `acme_kernel`.
  std::string layer{};
  bool enabled = true;
  std::string directory{};  // "" = no local store
  uint64_t max_size_bytes = uint64_t{1} << 30;
  // e.g. of MakeRedisStore; entries found there are kept locally too
  std::shared_ptr<CacheStore> remote{};
  // A bypass is an error instead of a silent compile. It may come from a guard that throws, from
  // the callback that compiles (CompileOutput::bypass), or from FinishBypassed or Bypass.
  bool strict = false;
  // Takes a copy of every entry found or stored, see artifact_recorder.h.
  std::shared_ptr<ArtifactRecorder> recorder{};
  // Hits have their artifact as CacheEntry::artifact_file, not in memory.
  bool artifacts_as_files = false;
  bool single_flight = true;
  std::chrono::milliseconds max_wait{600'000};  // for another compile; then compile here too
  // The same, of a lookup by a thread that compiles another key, for another process that may wait
  // for that key.
  std::chrono::milliseconds max_nested_wait{10'000};
};

class CompileCache {
 public:
  explicit CompileCache(CompileCacheOptions options);
  ~CompileCache();
  CompileCache(const CompileCache&) = delete;
  CompileCache& operator=(const CompileCache&) = delete;

  // Looks up, compiles and stores if necessary, emits the event: a hit before it returns, a miss or
  // a bypass after `compile` has run; before it runs, the instant `<layer>_cache_miss`. Exceptions
  // of `compile` are passed on, after a miss event.
  CacheResult GetOrCompile(const CacheKey& key, GuardCheck check_guard,
                           FunctionRef<CompileOutput()> compile,
                           CallSite location = CallSite::Current());

  // The same in steps, for callers that cannot put compiling in a callback. Exactly one of Finish*
  // must be called unless it was a hit; if none is, the destructor emits the miss.
  class Lookup {
   public:
    Lookup(Lookup&& other) noexcept;
    Lookup& operator=(Lookup&&) = delete;
    ~Lookup();

    CacheState state() const { return state_; }
    const CacheEntry& entry() const { return entry_; }  // of a hit
    CacheEntry& entry() { return entry_; }
    const Status& status() const { return status_; }
    const CacheInfo& info() const { return info_; }
    const std::string& content_hash() const { return content_hash_; }

    // Compiled: keeps the entry and emits the miss. time_taken_ns, if 0, becomes the time since
    // Find. Not ok if no store could keep it.
    Status Finish(CacheEntry& entry);
    // What was compiled cannot be cached: emits the bypass. In strict mode status() is an error
    // afterwards.
    void FinishBypassed(const BypassReason& reason);

   private:
    friend class CompileCache;
    friend class LayeredCompileCache;
    Lookup(CompileCache* cache, CallSite location) : cache_(cache), location_(location) {}
    void EmitMiss() noexcept;
    void EmitBegun() noexcept;
    void BeginCompile() noexcept;

    CompileCache* cache_;
    CallSite location_;  // its texts live as long as the program (literals), or until Finish*
    CacheKey key_;
    CacheState state_ = CacheState::kMiss;
    CacheEntry entry_;
    CacheInfo info_;
    Status status_;
    int64_t start_ns_ = 0;
    bool is_emitted_ = false;
    std::string content_hash_;                // of a hit, or of what Finish stored
    std::vector<std::string> rejected_;       // content hashes that are not tried again
    std::optional<std::string> entry_error_;  // of the remote store's entries that failed
    std::shared_ptr<detail::Flight> flight_;  // others wait while it is held
  };
  Lookup Find(const CacheKey& key, GuardCheck check_guard, CallSite location = CallSite::Current());

  // As Find, but an entry whose guards hold is a hit only if `accept` returns true for it with its
  // artifact; `accept` may complete `info`. A refused entry is a miss with the
  // cache_status_detailed that `accept` has set.
  using Accept = FunctionRef<bool(const CacheEntry& entry, CacheInfo& info)>;
  Lookup Find(const CacheKey& key, GuardCheck check_guard, Accept accept,
              CallSite location = CallSite::Current());

  // For code that cannot be cached, known before a key could be made: counts, emits the event. In
  // strict mode the status is an error; otherwise the caller compiles.
  Status Bypass(const BypassReason& reason, CallSite location = CallSite::Current());

  // Stores without a lookup and without an event. PutStored keeps an entry of another store, locally
  // only if there is a local store.
  Status Put(std::string_view key, const CacheEntry& entry);
  Status PutStored(std::string_view key, const StoredEntry& entry, ArtifactSource artifact);
  // Removes every entry of the key, in all stores.
  Status Remove(std::string_view key);
  // Removes one entry in the local store only, e.g. one that this machine cannot use.
  Status RemoveLocal(std::string_view key, const std::string& content_hash);

  // What a bypass for `reason` means to the caller: an error in strict mode. Emits nothing.
  Status StatusOfBypass(const BypassReason& reason) const;

  const std::string& layer() const;
  bool enabled() const;
  CacheCounters counters() const;

 private:
  friend class LayeredCompileCache;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// An entry as bytes, with a checksum; Decode rejects everything else, and gives the artifact in
// memory. "" if the artifact is a file that cannot be read.
std::string EncodeCacheEntry(const CacheEntry& entry);
Status DecodeCacheEntry(std::string_view bytes, CacheEntry& entry);

}  // namespace LIBTRACE_EXPORT
