#include "libtrace/cache/compile_cache.h"

#include "core/cache/compile_cache_impl.h"
#include "core/clock.h"
#include "core/errno_scope.h"
#include "core/exception_text.h"
#include "libtrace/cache/artifact_recorder.h"
#include "libtrace/chromium_event.h"
#include "libtrace/log_format.h"

namespace libtrace {
CompileCache::CompileCache(CompileCacheOptions options) {
  const detail::ErrnoScope keeps_errno;
  impl_ = std::make_unique<Impl>();
  impl_->options = std::move(options);
  const CompileCacheOptions& kept = impl_->options;
  if (!kept.directory.empty())
    impl_->local = std::make_unique<LocalStore>(kept.directory, kept.max_size_bytes);
  if (!impl_->local && !kept.remote) impl_->options.single_flight = false;
}
CompileCache::~CompileCache() {
  const detail::ErrnoScope keeps_errno;
  impl_.reset();
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

Status CompileCache::Impl::Store(std::string_view key, const CacheEntry& entry,
                                 bool is_remote_wanted, StoredEntry& stored) {
  Status status = detail::EncodeHeadOf(entry, stored);
  if (!status.ok()) {
    Count(&CacheCounters::store_error_count);
    return status;
  }
  const auto artifact = [&](ChunkSink sink) { return detail::ReadArtifact(entry, sink); };
  status = Status::Error("the cache has no store");
  if (local) {
    status = local->Put(key, stored, artifact);
    if (!status.ok()) Count(&CacheCounters::store_error_count);
  }
  if (options.remote && (is_remote_wanted || !local)) {
    const Status remote_status = options.remote->Put(key, stored, artifact);
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
  const detail::ErrnoScope keeps_errno;
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
    is_hit = impl_->Search(lookup, check_guard, accept) ||
             (impl_->options.single_flight && impl_->WaitOrClaim(lookup, check_guard, accept));
  } catch (...) {
    std::string reason = detail::CurrentExceptionMessage();
    if (reason.empty()) reason = "a guard threw";
    impl_->FailLookup(lookup, {std::move(reason), detail::CurrentExceptionType(), {}, true});
    return lookup;
  }
  impl_->CountOutcome(lookup, is_hit);
  lookup.info_.key = key.text;
  lookup.info_.components = key.components;
  lookup.info_.cache_event_time_ns = detail::NowNs();
  if (!is_hit) {
    if (!lookup.info_.remote_error) lookup.info_.remote_error = lookup.entry_error_;
    // A store that did not answer may have had the entry, whatever the others said.
    if (lookup.info_.remote_error) {
      lookup.info_.cache_status_detailed = "remote_error";
    } else if (!lookup.info_.cache_status_detailed) {
      lookup.info_.cache_status_detailed = "full_miss";
    }
    return lookup;
  }
  if (impl_->options.recorder)
    impl_->options.recorder->Record(impl_->options.layer, key.text, lookup.entry_);
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
      is_emitted_(other.is_emitted_),
      content_hash_(std::move(other.content_hash_)),
      rejected_(std::move(other.rejected_)),
      entry_error_(std::move(other.entry_error_)),
      flight_(std::move(other.flight_)) {}

CompileCache::Lookup::~Lookup() {
  const detail::ErrnoScope keeps_errno;
  EmitMiss();
  flight_.reset();
}

void CompileCache::Lookup::EmitMiss() noexcept {
  if (cache_ == nullptr || is_emitted_) return;
  is_emitted_ = true;
  cache_->impl_->Count(&CacheCounters::miss_count);
  if (info_.cache_status_detailed == "guard_miss")
    cache_->impl_->Count(&CacheCounters::guard_miss_count);
  EmitCacheEvent(cache_->layer(), CacheState::kMiss, info_, location_);
}

// A log that ends while the key is compiled shows that it was looked up. The record of the lookup
// itself follows with what came of it.
void CompileCache::Lookup::EmitBegun() noexcept {
  if (state_ != CacheState::kMiss || !IsEnabled()) return;
  const auto args = [this](JsonWriter& json) {
    json.OptionalField("key", info_.key)
        .OptionalField("cache_event_time", info_.cache_event_time_ns)
        .Field("cache_state", "miss")
        .OptionalField("cache_status_detailed", info_.cache_status_detailed);
    json.OptionalField("components", info_.components);
  };
  try {
    EmitInstant(cache_->layer() + std::string(format::kCacheMissSuffix), args, location_);
  } catch (...) {  // no memory for a name
  }
}

void CompileCache::Lookup::BeginCompile() noexcept {
  if (flight_) flight_->BeginCompile();
}

Status CompileCache::Lookup::Finish(CacheEntry& entry) {
  const detail::ErrnoScope keeps_errno;
  if (state_ != CacheState::kMiss) return Status::Error("only a miss is stored");
  if (entry.time_taken_ns == 0) entry.time_taken_ns = detail::SteadyNs() - start_ns_;
  StoredEntry stored;
  Status status = cache_->impl_->Store(key_.text, entry, true, stored);
  if (status.ok()) content_hash_ = stored.content_hash;
  BeginCompile();
  flight_.reset();
  if (!is_emitted_) info_.time_taken_ns = entry.time_taken_ns;
  EmitMiss();
  if (const auto& recorder = cache_->impl_->options.recorder) {
    recorder->Record(cache_->layer(), key_.text, entry);
    if (!recorder->AfterCompile(location_).ok()) {
      cache_->impl_->Count(&CacheCounters::store_error_count);
    }
  }
  return status;
}

void CompileCache::Lookup::FinishBypassed(const BypassReason& reason) {
  if (state_ != CacheState::kMiss) return;
  const detail::ErrnoScope keeps_errno;
  state_ = CacheState::kBypass;
  is_emitted_ = true;
  BeginCompile();
  flight_.reset();
  cache_->impl_->EmitBypass(reason, info_, location_);
  status_ = cache_->impl_->StatusOfBypass(reason);
}

CacheResult CompileCache::GetOrCompile(const CacheKey& key, GuardCheck check_guard,
                                       FunctionRef<CompileOutput()> compile, CallSite location) {
  const detail::ErrnoScope keeps_errno;
  Lookup lookup = Find(key, check_guard, location);
  CacheResult result;
  result.state = lookup.state();
  if (lookup.state() == CacheState::kHit) {
    result.entry = std::move(lookup.entry());
    result.is_cached = true;
    result.content_hash = lookup.content_hash();
    return result;
  }
  if (!lookup.status().ok()) {
    result.status = lookup.status();
    return result;
  }
  lookup.EmitBegun();
  lookup.BeginCompile();
  CompileOutput output = compile();
  if (lookup.state() == CacheState::kMiss) {
    if (output.bypass) {
      lookup.FinishBypassed(*output.bypass);
      result.state = CacheState::kBypass;
      result.status = lookup.status();
      if (!result.status.ok()) return result;
    } else {
      result.is_cached = lookup.Finish(output.entry).ok();
      result.content_hash = lookup.content_hash();
    }
  }
  result.entry = std::move(output.entry);
  return result;
}

Status CompileCache::Bypass(const BypassReason& reason, CallSite location) {
  const detail::ErrnoScope keeps_errno;
  CacheInfo info;
  impl_->EmitBypass(reason, info, location);
  return impl_->StatusOfBypass(reason);
}

Status CompileCache::StatusOfBypass(const BypassReason& reason) const {
  const detail::ErrnoScope keeps_errno;
  return impl_->StatusOfBypass(reason);
}

Status CompileCache::Put(std::string_view key, const CacheEntry& entry) {
  const detail::ErrnoScope keeps_errno;
  StoredEntry stored;
  return impl_->Store(key, entry, true, stored);
}

Status CompileCache::PutStored(std::string_view key, const StoredEntry& entry,
                               ArtifactSource artifact) {
  const detail::ErrnoScope keeps_errno;
  detail::EntryHead head;
  if (Status status = detail::DecodeHead(entry, head); !status.ok()) return status;
  if (!impl_->local && !impl_->options.remote) return Status::Error("the cache has no store");
  CacheStore& store = impl_->local ? *impl_->local : *impl_->options.remote;
  return store.Put(key, entry, artifact);
}

Status CompileCache::RemoveLocal(std::string_view key, const std::string& content_hash) {
  const detail::ErrnoScope keeps_errno;
  return impl_->local ? impl_->local->RemoveEntry(key, {content_hash, {}, 0}) : Status();
}

Status CompileCache::Remove(std::string_view key) {
  const detail::ErrnoScope keeps_errno;
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
  const detail::ErrnoScope keeps_errno;
  CacheCounters counters;
  {
    Impl::Counted& mine = impl_->tally.get();
    const std::lock_guard lock(mine.mutex);
    counters = mine.counters;
  }
  if (impl_->local) counters.damaged_count += impl_->local->stats().damaged_count;
  return counters;
}

}  // namespace libtrace
