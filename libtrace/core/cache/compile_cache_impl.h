// The inside of CompileCache: compile_cache.cc has its interface, cache_search.cc how entries are
// found.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/cache/entry_head.h"
#include "core/cache/single_flight.h"
#include "core/per_process.h"
#include "libtrace/cache/compile_cache.h"

namespace libtrace {

struct CompileCache::Impl {
  CompileCacheOptions options;
  std::unique_ptr<LocalStore> local;
  struct Counted {
    std::mutex mutex;
    CacheCounters counters;
  };
  detail::PerProcess<Counted> tally;

  void Count(uint64_t CacheCounters::*counter) {
    Counted& mine = tally.get();
    const std::lock_guard lock(mine.mutex);
    ++(mine.counters.*counter);
  }

  // Searches all stores once. True: the lookup is a hit. May throw what guards throw.
  bool Search(Lookup& lookup, GuardCheck check_guard, Accept accept);
  // After a miss: waits for another compile of the key, or claims it. True: a hit.
  bool WaitOrClaim(Lookup& lookup, GuardCheck check_guard, Accept accept);
  // Counts the lookup once, however often it searched.
  void CountOutcome(const Lookup& lookup, bool is_hit);

  void FailLookup(Lookup& lookup, const BypassReason& reason);
  void EmitBypass(const BypassReason& reason, CacheInfo& info, CallSite location);
  Status StatusOfBypass(const BypassReason& reason) const;
  Status Store(std::string_view key, const CacheEntry& entry, bool is_remote_wanted,
               StoredEntry& stored);

 private:
  bool SearchStore(CacheStore& store, bool is_remote, Lookup& lookup, GuardCheck check_guard,
                   Accept accept);
  bool GuardHolds(const CacheEntry& entry, Lookup& lookup, GuardCheck check_guard);
  // The artifact of a listed entry, checked; one of the remote store is kept locally.
  Status LoadArtifact(CacheStore& store, bool is_remote, const std::string& key,
                      const StoredEntry& stored, detail::EntryHead& head);
  Status Read(CacheStore& store, const std::string& key, const StoredEntry& stored,
              detail::EntryHead& head);
};

}  // namespace libtrace
