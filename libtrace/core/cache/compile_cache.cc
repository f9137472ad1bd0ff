#include "libtrace/cache/compile_cache.h"

#include <mutex>

#include "core/clock.h"
#include "core/digest.h"
#include "core/exception_text.h"
#include "libtrace/cache/artifact_recorder.h"

namespace libtrace {
namespace {

constexpr std::string_view kFullMiss = "full_miss";
constexpr std::string_view kGuardMiss = "guard_miss";

StoredEntry ToStored(std::string_view bytes) {
  return {detail::Base32Key(detail::Sha256Of(bytes)), std::string(bytes)};
}

}  // namespace

struct CompileCache::Impl {
  CompileCacheOptions options;
  std::unique_ptr<LocalStore> local;
  mutable std::mutex mutex;  // guards the counters
  CacheCounters counters;

  void Count(uint64_t CacheCounters::*counter) {
    const std::lock_guard lock(mutex);
    ++(counters.*counter);
  }

  // One pass over the entries of a store. Returns true if one of them is the hit.
  bool SearchStore(CacheStore& store, std::string_view name, Lookup& lookup, GuardCheck check_guard,
                   Accept accept);
  bool Matches(const CacheEntry& entry, Lookup& lookup, GuardCheck check_guard, Accept accept);
  void Hit(std::string_view store_name, const StoredEntry& stored, Lookup& lookup);
  void FailLookup(Lookup& lookup, const BypassReason& reason);
  void EmitBypass(const BypassReason& reason, CacheInfo& info, CallSite location);
  Status StatusOfBypass(const BypassReason& reason) const;
  Status Store(std::string_view key, std::string_view bytes, bool is_remote_wanted);
};

CompileCache::CompileCache(CompileCacheOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
  if (!impl_->options.directory.empty()) {
    impl_->local =
        std::make_unique<LocalStore>(impl_->options.directory, impl_->options.max_size_bytes);
  }
}
CompileCache::~CompileCache() = default;

bool CompileCache::Impl::Matches(const CacheEntry& entry, Lookup& lookup, GuardCheck check_guard,
                                 Accept accept) {
  if (!entry.guard.empty() && (!check_guard || !check_guard(entry.guard))) {
    // Entries come newest first: the newest failed guard is the one worth telling.
    if (!lookup.info_.cache_status_guard_expr) {
      lookup.info_.cache_status_detailed = kGuardMiss;
      lookup.info_.cache_status_guard_expr = entry.guard;
    }
    return false;
  }
  CacheInfo info;
  if (accept && !accept(entry, info)) {
    lookup.info_.cache_status_detailed = info.cache_status_detailed;
    lookup.info_.cache_status_guard_expr = info.cache_status_guard_expr;
    return false;
  }
  info.cache_status_detailed = "hit";
  if (!entry.guard.empty()) info.cache_status_guard_expr = entry.guard;
  lookup.info_ = std::move(info);
  return true;
}

bool CompileCache::Impl::SearchStore(CacheStore& store, std::string_view name, Lookup& lookup,
                                     GuardCheck check_guard, Accept accept) {
  std::vector<StoredEntry> stored;
  const Status status = store.Get(lookup.key_.text, stored);
  const bool is_remote = name == "remote";
  if (!status.ok() && is_remote) Count(&CacheCounters::remote_error_count);
  for (const StoredEntry& candidate : stored) {
    CacheEntry entry;
    if (!DecodeCacheEntry(candidate.bytes, entry).ok()) {
      Count(&CacheCounters::damaged_count);
      continue;
    }
    if (!Matches(entry, lookup, check_guard, accept)) continue;
    lookup.entry_ = std::move(entry);
    Hit(name, candidate, lookup);
    return true;
  }
  if (status.ok() || !is_remote) {
    Count(is_remote ? &CacheCounters::remote_miss_count : &CacheCounters::local_miss_count);
  }
  return false;
}

void CompileCache::Impl::Hit(std::string_view store_name, const StoredEntry& stored,
                             Lookup& lookup) {
  lookup.state_ = CacheState::kHit;
  lookup.info_.answered_by = store_name;
  const std::string& key = lookup.key_.text;
  if (store_name == "remote") {
    Count(&CacheCounters::remote_hit_count);
    if (local && !local->Put(key, stored).ok()) Count(&CacheCounters::store_error_count);
  } else {
    Count(&CacheCounters::local_hit_count);
    local->Touch(key, stored.content_hash);
  }
  if (options.recorder) options.recorder->Record(options.layer, key, stored.bytes);
  const std::lock_guard lock(mutex);
  ++counters.hit_count;
  counters.time_saved_ns += lookup.entry_.time_taken_ns;
}

Status CompileCache::Impl::StatusOfBypass(const BypassReason& reason) const {
  if (!options.strict) return {};
  return Status::Error("compile cache `" + options.layer +
                       "` bypassed in strict mode: " + reason.reason);
}

void CompileCache::Impl::EmitBypass(const BypassReason& reason, CacheInfo& info,
                                    CallSite location) {
  Count(&CacheCounters::bypass_count);
  info.cache_status_detailed.reset();
  info.cache_status_guard_expr.reset();
  info.cache_bypass_reason = reason.reason;
  if (!reason.exception_type.empty()) info.cache_bypass_exception_type = reason.exception_type;
  if (!reason.traceback.empty()) info.cache_bypass_traceback = reason.traceback;
  info.cache_bypass_hard_exception = reason.is_unexpected;
  EmitCacheEvent(options.layer, CacheState::kBypass, info, location);
}

void CompileCache::Impl::FailLookup(Lookup& lookup, const BypassReason& reason) {
  lookup.state_ = CacheState::kBypass;
  lookup.is_emitted_ = true;
  lookup.info_.key = lookup.key_.text;
  lookup.info_.components = lookup.key_.components;
  EmitBypass(reason, lookup.info_, lookup.location_);
  lookup.status_ = StatusOfBypass(reason);
}

Status CompileCache::Impl::Store(std::string_view key, std::string_view bytes,
                                 bool is_remote_wanted) {
  const StoredEntry stored = ToStored(bytes);
  Status status = Status::Error("the cache has no store");
  if (local) {
    status = local->Put(key, stored);
    if (!status.ok()) Count(&CacheCounters::store_error_count);
  }
  if (options.remote && (is_remote_wanted || !local)) {
    const Status remote_status = options.remote->Put(key, stored);
    if (!remote_status.ok()) Count(&CacheCounters::remote_error_count);
    if (!status.ok()) status = remote_status;
  }
  return status;
}

CompileCache::Lookup CompileCache::Find(const CacheKey& key, GuardCheck check_guard,
                                        CallSite location) {
  return Find(key, check_guard, Accept(), location);
}

CompileCache::Lookup CompileCache::Find(const CacheKey& key, GuardCheck check_guard, Accept accept,
                                        CallSite location) {
  Lookup lookup(this, location);
  lookup.key_ = key;
  lookup.start_ns_ = detail::SteadyNs();
  if (!impl_->options.enabled) {
    lookup.state_ = CacheState::kDisabled;
    lookup.is_emitted_ = true;
    impl_->Count(&CacheCounters::disabled_count);
    EmitCacheEvent(impl_->options.layer, CacheState::kDisabled, {}, location);
    return lookup;
  }
  bool is_hit = false;
  try {
    is_hit =
        (impl_->local && impl_->SearchStore(*impl_->local, "local", lookup, check_guard, accept)) ||
        (impl_->options.remote &&
         impl_->SearchStore(*impl_->options.remote, "remote", lookup, check_guard, accept));
  } catch (...) {
    std::string reason = detail::CurrentExceptionMessage();
    if (reason.empty()) reason = "a guard threw";
    impl_->FailLookup(lookup, {std::move(reason), detail::CurrentExceptionType(), {}, true});
    return lookup;
  }
  lookup.info_.key = key.text;
  lookup.info_.components = key.components;
  lookup.info_.cache_event_time_ns = detail::NowNs();
  if (!is_hit) {
    if (!lookup.info_.cache_status_detailed) lookup.info_.cache_status_detailed = kFullMiss;
    return lookup;
  }
  if (!lookup.info_.time_saved_ms) lookup.info_.time_saved_ns = lookup.entry_.time_taken_ns;
  lookup.is_emitted_ = true;
  EmitCacheEvent(impl_->options.layer, CacheState::kHit, lookup.info_, location);
  return lookup;
}

CompileCache::Lookup::Lookup(Lookup&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)),
      location_(other.location_),
      key_(std::move(other.key_)),
      state_(other.state_),
      entry_(std::move(other.entry_)),
      info_(std::move(other.info_)),
      status_(std::move(other.status_)),
      start_ns_(other.start_ns_),
      is_emitted_(other.is_emitted_) {}

CompileCache::Lookup::~Lookup() { EmitMiss(); }

void CompileCache::Lookup::EmitMiss() noexcept {
  if (cache_ == nullptr || is_emitted_) return;
  is_emitted_ = true;
  {
    const std::lock_guard lock(cache_->impl_->mutex);
    ++cache_->impl_->counters.miss_count;
    if (info_.cache_status_detailed == kGuardMiss) ++cache_->impl_->counters.guard_miss_count;
  }
  EmitCacheEvent(cache_->layer(), CacheState::kMiss, info_, location_);
}

Status CompileCache::Lookup::Finish(CacheEntry& entry) {
  if (state_ != CacheState::kMiss) return Status::Error("only a miss is stored");
  if (entry.time_taken_ns == 0) entry.time_taken_ns = detail::SteadyNs() - start_ns_;
  const std::string bytes = EncodeCacheEntry(entry);
  Status status = cache_->impl_->Store(key_.text, bytes, true);
  if (!is_emitted_) info_.time_taken_ns = entry.time_taken_ns;
  EmitMiss();
  if (const auto& recorder = cache_->impl_->options.recorder) {
    recorder->Record(cache_->layer(), key_.text, bytes);
    if (!recorder->AfterCompile(location_).ok()) {
      cache_->impl_->Count(&CacheCounters::store_error_count);
    }
  }
  return status;
}

void CompileCache::Lookup::FinishBypassed(const BypassReason& reason) {
  if (state_ != CacheState::kMiss) return;
  state_ = CacheState::kBypass;
  is_emitted_ = true;
  cache_->impl_->EmitBypass(reason, info_, location_);
  status_ = cache_->impl_->StatusOfBypass(reason);
}

CacheResult CompileCache::GetOrCompile(const CacheKey& key, GuardCheck check_guard,
                                       FunctionRef<CompileOutput()> compile, CallSite location) {
  Lookup lookup = Find(key, check_guard, location);
  CacheResult result;
  result.state = lookup.state();
  if (lookup.state() == CacheState::kHit) {
    result.entry = std::move(lookup.entry());
    result.is_cached = true;
    return result;
  }
  if (!lookup.status().ok()) {
    result.status = lookup.status();
    return result;
  }
  CompileOutput output = compile();
  if (lookup.state() == CacheState::kMiss) {
    if (output.bypass) {
      lookup.FinishBypassed(*output.bypass);
      result.state = CacheState::kBypass;
      result.status = lookup.status();
      if (!result.status.ok()) return result;
    } else {
      result.is_cached = lookup.Finish(output.entry).ok();
    }
  }
  result.entry = std::move(output.entry);
  return result;
}

Status CompileCache::Bypass(const BypassReason& reason, CallSite location) {
  CacheInfo info;
  impl_->EmitBypass(reason, info, location);
  return impl_->StatusOfBypass(reason);
}

Status CompileCache::StatusOfBypass(const BypassReason& reason) const {
  return impl_->StatusOfBypass(reason);
}

Status CompileCache::Put(std::string_view key, const CacheEntry& entry) {
  return impl_->Store(key, EncodeCacheEntry(entry), true);
}

Status CompileCache::PutBytes(std::string_view key, std::string_view bytes) {
  CacheEntry entry;
  if (Status status = DecodeCacheEntry(bytes, entry); !status.ok()) return status;
  return impl_->Store(key, bytes, false);
}

Status CompileCache::Remove(std::string_view key) {
  Status status;
  if (impl_->local) status = impl_->local->Remove(key);
  if (impl_->options.remote) {
    Status remote_status = impl_->options.remote->Remove(key);
    if (!remote_status.ok()) {
      impl_->Count(&CacheCounters::remote_error_count);
      if (status.ok()) status = std::move(remote_status);
    }
  }
  return status;
}

const std::string& CompileCache::layer() const { return impl_->options.layer; }
bool CompileCache::enabled() const { return impl_->options.enabled; }

CacheCounters CompileCache::counters() const {
  CacheCounters counters;
  {
    const std::lock_guard lock(impl_->mutex);
    counters = impl_->counters;
  }
  if (impl_->local) counters.damaged_count += impl_->local->stats().damaged_count;
  return counters;
}

}  // namespace libtrace
