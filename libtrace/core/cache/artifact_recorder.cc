#include "libtrace/cache/artifact_recorder.h"

#include <mutex>
#include <utility>

#include "core/cache/atomic_file.h"
#include "core/cache/bundle.h"
#include "core/cache/entry_head.h"
#include "core/digest.h"
#include "core/errno_scope.h"
#include "core/per_process.h"
#include "libtrace/cache/compile_cache.h"
#include "libtrace/trace.h"

namespace libtrace {
namespace {

void AddTo(CacheBundleInfo& info, std::string_view layer, std::string_view key) {
  std::vector<std::string>& keys = info.keys_by_layer[std::string(layer)];
  if (keys.empty() || keys.back() != key) keys.emplace_back(key);
  ++info.entry_count;
}

void EmitBundle(std::string_view action, std::string_view path, const CacheBundleInfo& info,
                CallSite location) {
  EmitOptions options;
  options.expects_compile_id = false;
  EmitJsonArtifact(
      "libtrace_cache_bundle", JsonStyle::kLinePerToken,
      [&](JsonWriter& json) {
        json.BeginObject().Field("action", action);
        if (!path.empty()) json.Field("path", path);
        json.Field("keys_by_layer", info.keys_by_layer)
            .Field("entry_count", info.entry_count)
            .Field("size_bytes", info.size_bytes)
            .Field("skipped_count", info.skipped_count)
            .EndObject();
      },
      options, location);
}

}  // namespace

struct ArtifactRecorder::Impl {
  // What an artifact is read from, without its bytes twice.
  struct Recorded {
    StoredEntry stored;
    std::shared_ptr<const CacheEntry> artifact;  // nothing but the artifact
  };
  // A bundle about to be written. `artifacts` are distinct, in the order of their offsets.
  struct Contents {
    CacheBundleInfo info;
    std::string index;
    std::vector<std::shared_ptr<const CacheEntry>> artifacts;
  };

  struct State {
    std::mutex mutex;
    // (layer, key) -> content hash
    std::map<std::pair<std::string, std::string>, std::map<std::string, Recorded>> entries;
    std::map<detail::Sha256, std::weak_ptr<const CacheEntry>> artifacts;
    std::string auto_save_path;
    bool is_changed = false;
  };
  detail::PerProcess<State> state;

  Contents Collect() const;
};

ArtifactRecorder::ArtifactRecorder() {
  const detail::ErrnoScope keeps_errno;
  impl_ = std::make_unique<Impl>();
}
ArtifactRecorder::~ArtifactRecorder() {
  const detail::ErrnoScope keeps_errno;
  impl_.reset();
}

void ArtifactRecorder::Record(std::string_view layer, std::string_view key,
                              const CacheEntry& entry) {
  const detail::ErrnoScope keeps_errno;
  StoredEntry stored;
  detail::EntryHead head;
  if (!detail::EncodeHeadOf(entry, stored).ok() || !detail::DecodeHead(stored, head).ok()) return;
  Impl::State& state = impl_->state.get();
  const std::lock_guard lock(state.mutex);
  auto& variants = state.entries[{std::string(layer), std::string(key)}];
  const auto [variant, is_new] = variants.try_emplace(stored.content_hash);
  if (!is_new) return;
  state.is_changed = true;
  std::weak_ptr<const CacheEntry>& known = state.artifacts[head.artifact_digest];
  std::shared_ptr<const CacheEntry> artifact = known.lock();
  if (!artifact) {
    auto copy = std::make_shared<CacheEntry>();
    copy->artifact = entry.artifact;
    copy->artifact_file = entry.artifact_file;
    known = artifact = std::move(copy);
  }
  variant->second = {std::move(stored), std::move(artifact)};
}

ArtifactRecorder::Impl::Contents ArtifactRecorder::Impl::Collect() const {
  Contents contents;
  std::vector<detail::BundleEntry> listed;
  std::map<const CacheEntry*, uint64_t> offsets;
  uint64_t next_offset = 0;
  State& mine = state.get();
  const std::lock_guard lock(mine.mutex);
  for (const auto& [name, variants] : mine.entries) {
    for (const auto& [hash, recorded] : variants) {
      AddTo(contents.info, name.first, name.second);
      const auto [offset, is_new] = offsets.try_emplace(recorded.artifact.get(), next_offset);
      if (is_new) {
        next_offset += recorded.stored.artifact_size_bytes;
        contents.artifacts.push_back(recorded.artifact);
      }
      listed.push_back({name.first, name.second, recorded.stored, offset->second});
    }
  }
  contents.index = detail::EncodeBundleIndex(listed);
  contents.info.size_bytes =
      detail::BundleTitle(detail::Hex({})).size() + contents.index.size() + next_offset;
  return contents;
}

namespace {

// The bundle in pieces. Reads the artifacts twice: the checksum stands before them.
Status WriteBundle(std::string_view index,
                   const std::vector<std::shared_ptr<const CacheEntry>>& artifacts,
                   ChunkSink sink) {
  detail::Sha256Stream digest;
  digest.Add(index);
  for (const auto& artifact : artifacts) {
    Status status = detail::ReadArtifact(*artifact, [&](std::string_view chunk) {
      digest.Add(chunk);
      return true;
    });
    if (!status.ok()) return status;
  }
  if (!sink(detail::BundleTitle(detail::Hex(digest.Finish()))) || !sink(index))
    return Status::Error("a cache bundle could not be written");
  for (const auto& artifact : artifacts) {
    if (Status status = detail::ReadArtifact(*artifact, sink); !status.ok()) return status;
  }
  return {};
}

}  // namespace

std::string ArtifactRecorder::Serialize(CacheBundleInfo* info, CallSite location) const {
  const detail::ErrnoScope keeps_errno;
  Impl::Contents contents = impl_->Collect();
  std::string bundle;
  const Status status =
      WriteBundle(contents.index, contents.artifacts, [&](std::string_view chunk) {
        bundle.append(chunk);
        return true;
      });
  if (!status.ok()) return {};
  EmitBundle("serialize", "", contents.info, location);
  if (info != nullptr) *info = std::move(contents.info);
  return bundle;
}

Status ArtifactRecorder::Save(const std::string& path, CallSite location) const {
  const detail::ErrnoScope keeps_errno;
  const Impl::Contents contents = impl_->Collect();
  EmitBundle("serialize", path, contents.info, location);
  return detail::WriteFileAtomically(
      path, [&](ChunkSink sink) { return WriteBundle(contents.index, contents.artifacts, sink); });
}

void ArtifactRecorder::SetAutoSave(std::string path) {
  const detail::ErrnoScope keeps_errno;
  Impl::State& state = impl_->state.get();
  const std::lock_guard lock(state.mutex);
  state.auto_save_path = std::move(path);
}

Status ArtifactRecorder::AfterCompile(CallSite location) {
  Impl::State& state = impl_->state.get();
  std::string path;
  {
    const std::lock_guard lock(state.mutex);
    if (state.auto_save_path.empty() || !std::exchange(state.is_changed, false)) return {};
    path = state.auto_save_path;
  }
  Status status = Save(path, location);
  if (!status.ok()) {
    const std::lock_guard lock(state.mutex);
    state.is_changed = true;  // the next compile tries again
  }
  return status;
}

void ArtifactRecorder::Clear() {
  const detail::ErrnoScope keeps_errno;
  Impl::State& state = impl_->state.get();
  const std::lock_guard lock(state.mutex);
  state.entries.clear();
  state.artifacts.clear();
  state.is_changed = false;
}

CacheBundleInfo ArtifactRecorder::info() const {
  const detail::ErrnoScope keeps_errno;
  return impl_->Collect().info;
}

namespace {

Status Populate(detail::BundleBytes bytes, std::string_view path,
                const std::vector<CompileCache*>& caches, CacheBundleInfo* info,
                CallSite location) {
  std::vector<detail::BundleEntry> entries;
  CacheBundleInfo contents;
  uint64_t artifacts_offset = 0;
  if (Status status =
          detail::ReadBundleIndex(bytes, entries, artifacts_offset, contents.size_bytes);
      !status.ok()) {
    return status;
  }
  for (const detail::BundleEntry& entry : entries) {
    CompileCache* target = nullptr;
    for (CompileCache* cache : caches) {
      if (cache->layer() == entry.layer) target = cache;
    }
    const auto artifact = [&](ChunkSink sink) {
      return bytes(artifacts_offset + entry.artifact_offset, entry.stored.artifact_size_bytes,
                   sink);
    };
    if (target == nullptr || !target->PutStored(entry.key, entry.stored, artifact).ok()) {
      ++contents.skipped_count;
      continue;
    }
    AddTo(contents, entry.layer, entry.key);
  }
  EmitBundle("populate", path, contents, location);
  if (info != nullptr) *info = std::move(contents);
  return {};
}

}  // namespace

Status PopulateCaches(std::string_view bundle, const std::vector<CompileCache*>& caches,
                      CacheBundleInfo* info, CallSite location) {
  const detail::ErrnoScope keeps_errno;
  const auto bytes = [&](uint64_t offset, uint64_t size_bytes, ChunkSink sink) {
    if (offset >= bundle.size()) return Status();
    return sink(bundle.substr(offset, size_bytes))
               ? Status()
               : Status::Error("the transfer of an artifact was stopped");
  };
  return Populate(bytes, "", caches, info, location);
}

Status LoadCacheBundle(const std::string& path, const std::vector<CompileCache*>& caches,
                       CacheBundleInfo* info, CallSite location) {
  const detail::ErrnoScope keeps_errno;
  std::shared_ptr<const ArtifactFile> file;
  if (Status status = ArtifactFile::Open(path, file); !status.ok()) return status;
  const auto bytes = [&](uint64_t offset, uint64_t size_bytes, ChunkSink sink) {
    return detail::ReadChunks(file->descriptor(), sink, offset, size_bytes);
  };
  return Populate(bytes, path, caches, info, location);
}

}  // namespace libtrace
