// How a lookup finds its entry: heads and guards first, then the artifact; the local store first,
// then the remote one.
#include <algorithm>

#include "core/cache/atomic_file.h"
#include "core/cache/compile_cache_impl.h"

namespace libtrace {
namespace {

Status Damaged() { return Status::Error("a cache entry is damaged: wrong checksum"); }

}  // namespace

bool CompileCache::Impl::GuardHolds(const CacheEntry& entry, Lookup& lookup,
                                    GuardCheck check_guard) {
  if (entry.guard.empty() || (check_guard && check_guard(entry.guard))) return true;
  // Entries come newest first: the newest failed guard is the one to report.
  if (!lookup.info_.cache_status_guard_expr) {
    lookup.info_.cache_status_detailed = "guard_miss";
    lookup.info_.cache_status_guard_expr = entry.guard;
  }
  return false;
}

// Into memory or a file, as the options say. The local store's files are used where they lie.
Status CompileCache::Impl::Read(CacheStore& store, const std::string& key,
                                const StoredEntry& stored, detail::EntryHead& head) {
  detail::Sha256Stream digest;
  uint64_t size_bytes = 0;
  const auto counted = [&](ChunkSink sink) {
    return [&, sink](std::string_view chunk) {
      size_bytes += chunk.size();
      if (size_bytes > head.artifact_size_bytes) return false;
      digest.Add(chunk);
      return sink(chunk);
    };
  };
  Status status;
  CacheEntry& entry = head.entry;
  if (!options.artifacts_as_files) {
    const auto append = [&](std::string_view chunk) {
      entry.artifact.append(chunk);
      return true;
    };
    status = store.Load(key, stored, counted(append));
  } else if (&store == local.get()) {
    status = local->Open(key, stored, entry.artifact_file);
    const auto ignore = [](std::string_view) { return true; };
    if (status.ok())
      status = detail::ReadChunks(entry.artifact_file->descriptor(), counted(ignore));
  } else {
    int fd = -1;
    status = detail::WriteUnnamedFile(
        "", [&](ChunkSink sink) { return store.Load(key, stored, counted(sink)); }, fd);
    if (status.ok()) status = ArtifactFile::FromDescriptor(fd, entry.artifact_file);
  }
  if (size_bytes > head.artifact_size_bytes) return Damaged();
  if (!status.ok()) return status;
  return digest.Finish() == head.artifact_digest ? Status() : Damaged();
}

Status CompileCache::Impl::LoadArtifact(CacheStore& store, bool is_remote, const std::string& key,
                                        const StoredEntry& stored, detail::EntryHead& head) {
  bool is_kept = false;
  if (is_remote && local) {
    // Through the disk, so that it is never in memory whole; the digest is checked on the way back.
    is_kept =
        local->Put(key, stored, [&](ChunkSink sink) { return store.Load(key, stored, sink); }).ok();
    if (is_kept && Read(*local, key, stored, head).ok()) return {};
    if (is_kept) (void)local->RemoveEntry(key, stored);
    head.entry.artifact.clear();
    head.entry.artifact_file.reset();
  }
  Status status = Read(store, key, stored, head);
  if (status.ok() && is_remote && local) Count(&CacheCounters::store_error_count);
  return status;
}

bool CompileCache::Impl::SearchStore(CacheStore& store, bool is_remote, Lookup& lookup,
                                     GuardCheck check_guard, Accept accept) {
  std::vector<StoredEntry> listed;
  const std::string& key = lookup.key_.text;
  const Status status = store.List(key, listed);
  if (!status.ok() && is_remote) lookup.info_.remote_error = status.message();
  std::vector<std::string>& rejected = lookup.rejected_;
  for (const StoredEntry& stored : listed) {
    if (std::find(rejected.begin(), rejected.end(), stored.content_hash) != rejected.end())
      continue;
    if (detail::IsOfAnotherVersion(stored)) continue;  // those who stored it use it
    detail::EntryHead head;
    Status usable = detail::DecodeHead(stored, head);
    const bool is_damaged = !usable.ok();
    if (!is_damaged && !GuardHolds(head.entry, lookup, check_guard)) {
      rejected.push_back(stored.content_hash);
      continue;
    }
    if (!is_damaged) usable = LoadArtifact(store, is_remote, key, stored, head);
    if (!usable.ok()) {
      if (is_remote) lookup.entry_error_ = usable.message();
      if (is_damaged || usable.message() == Damaged().message()) {
        if (is_remote) Count(&CacheCounters::damaged_count);
        (void)store.RemoveEntry(key, stored);
      }
      continue;
    }
    CacheInfo info;
    if (accept && !accept(head.entry, info)) {
      rejected.push_back(stored.content_hash);
      lookup.info_.cache_status_detailed = info.cache_status_detailed;
      lookup.info_.cache_status_guard_expr = info.cache_status_guard_expr;
      if (info.remote_error) lookup.entry_error_ = info.remote_error;
      continue;
    }
    if (!head.entry.guard.empty()) info.cache_status_guard_expr = head.entry.guard;
    info.cache_status_detailed = "hit";
    info.answered_by = is_remote ? "remote" : "local";
    lookup.info_ = std::move(info);
    lookup.entry_ = std::move(head.entry);
    lookup.content_hash_ = stored.content_hash;
    lookup.state_ = CacheState::kHit;
    if (!is_remote) store.Touch(key, stored.content_hash);
    return true;
  }
  return false;
}

bool CompileCache::Impl::Search(Lookup& lookup, GuardCheck check_guard, Accept accept) {
  lookup.info_.remote_error.reset();
  if (local && SearchStore(*local, false, lookup, check_guard, accept)) return true;
  if (options.remote && SearchStore(*options.remote, true, lookup, check_guard, accept))
    return true;
  return false;
}

bool CompileCache::Impl::WaitOrClaim(Lookup& lookup, GuardCheck check_guard, Accept accept) {
  std::string name = options.layer + '\n' + options.directory + '\n';
  if (options.directory.empty())
    name += std::to_string(reinterpret_cast<uintptr_t>(options.remote.get()));
  name.append("\n").append(lookup.key_.text);
  detail::FlightPlan plan(std::move(name), lookup.key_.text, local.get(), options.remote.get(),
                          {options.max_wait, options.max_nested_wait});
  const bool is_hit =
      plan.WaitOrClaim([&] { return Search(lookup, check_guard, accept); }, lookup.flight_);
  if (plan.waited_ns() > 0) {
    lookup.info_.waited_ns = plan.waited_ns();
    lookup.start_ns_ += plan.waited_ns();  // compiling begins after it
  }
  if (plan.gave_up() != detail::GaveUp::kNot) {
    const bool is_nested = plan.gave_up() == detail::GaveUp::kNested;
    lookup.info_.wait_given_up = is_nested ? "nested" : "max_wait";
  }
  return is_hit;
}

void CompileCache::Impl::CountOutcome(const Lookup& lookup, bool is_hit) {
  const bool is_remote = lookup.info_.answered_by == "remote";
  Counted& mine = tally.get();
  const std::lock_guard lock(mine.mutex);
  CacheCounters& counters = mine.counters;
  if (local) ++(is_hit && !is_remote ? counters.local_hit_count : counters.local_miss_count);
  if (options.remote && (!is_hit || is_remote)) {
    if (is_hit) {
      ++counters.remote_hit_count;
    } else if (lookup.info_.remote_error) {
      ++counters.remote_error_count;
    } else {
      ++counters.remote_miss_count;
    }
  }
  if (!is_hit) return;
  ++counters.hit_count;
  counters.time_saved_ns += lookup.entry_.time_taken_ns;
}

}  // namespace libtrace
