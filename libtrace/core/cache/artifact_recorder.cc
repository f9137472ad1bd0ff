#include "libtrace/cache/artifact_recorder.h"

#include <mutex>
#include <utility>

#include "core/cache/atomic_file.h"
#include "core/cache/byte_coder.h"
#include "core/digest.h"
#include "libtrace/cache/compile_cache.h"
#include "libtrace/trace.h"

namespace libtrace {
namespace {

constexpr std::string_view kMagic = "libtrace cache bundle 1\n";
constexpr size_t kHashSize = 64;  // hex SHA-256 of what follows it

struct BundleEntry {
  std::string_view layer;
  std::string_view key;
  std::string_view bytes;
};

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

Status ReadBundle(std::string_view bundle, std::vector<BundleEntry>& entries) {
  if (!bundle.starts_with(kMagic) || bundle.size() < kMagic.size() + kHashSize + 1 ||
      bundle[kMagic.size() + kHashSize] != '\n') {
    return Status::Error("not a cache bundle of this version");
  }
  const std::string_view hash = bundle.substr(kMagic.size(), kHashSize);
  const std::string_view body = bundle.substr(kMagic.size() + kHashSize + 1);
  if (detail::Sha256Hex(body) != hash)
    return Status::Error("cache bundle is damaged: wrong checksum");
  detail::ByteReader reader(body);
  const uint64_t count = reader.U64();
  for (uint64_t i = 0; i < count && reader.ok(); ++i) {
    BundleEntry entry;
    entry.layer = reader.Sized();
    entry.key = reader.Sized();
    entry.bytes = reader.Sized();
    entries.push_back(entry);
  }
  if (!reader.ok() || !reader.at_end()) return Status::Error("cache bundle is damaged: wrong size");
  return {};
}

}  // namespace

struct ArtifactRecorder::Impl {
  mutable std::mutex mutex;
  // (layer, key) -> content hash -> bytes
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::string>> entries;
  std::string auto_save_path;
  bool is_changed = false;
};

ArtifactRecorder::ArtifactRecorder() : impl_(std::make_unique<Impl>()) {}
ArtifactRecorder::~ArtifactRecorder() = default;

void ArtifactRecorder::Record(std::string_view layer, std::string_view key,
                              std::string_view entry_bytes) {
  std::string hash = detail::Base32Key(detail::Sha256Of(entry_bytes));
  const std::lock_guard lock(impl_->mutex);
  auto& variants = impl_->entries[{std::string(layer), std::string(key)}];
  if (variants.try_emplace(std::move(hash), entry_bytes).second) impl_->is_changed = true;
}

std::string ArtifactRecorder::Serialize(CacheBundleInfo* info, CallSite location) const {
  return SerializeFor("", info, location);
}

std::string ArtifactRecorder::SerializeFor(std::string_view path, CacheBundleInfo* info,
                                           CallSite location) const {
  CacheBundleInfo contents;
  std::string entries;
  {
    const std::lock_guard lock(impl_->mutex);
    for (const auto& [name, variants] : impl_->entries) {
      for (const auto& [hash, bytes] : variants) {
        AddTo(contents, name.first, name.second);
        detail::PutSized(name.first, entries);
        detail::PutSized(name.second, entries);
        detail::PutSized(bytes, entries);
      }
    }
  }
  std::string body;
  detail::PutU64(contents.entry_count, body);
  body += entries;
  std::string bundle(kMagic);
  bundle.append(detail::Sha256Hex(body)).append("\n").append(body);
  contents.size_bytes = bundle.size();
  EmitBundle("serialize", path, contents, location);
  if (info != nullptr) *info = std::move(contents);
  return bundle;
}

Status ArtifactRecorder::Save(const std::string& path, CallSite location) const {
  return detail::WriteFileAtomically(path, SerializeFor(path, nullptr, location));
}

void ArtifactRecorder::SetAutoSave(std::string path) {
  const std::lock_guard lock(impl_->mutex);
  impl_->auto_save_path = std::move(path);
}

Status ArtifactRecorder::AfterCompile(CallSite location) {
  std::string path;
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->auto_save_path.empty() || !std::exchange(impl_->is_changed, false)) return {};
    path = impl_->auto_save_path;
  }
  Status status = Save(path, location);
  if (!status.ok()) {
    const std::lock_guard lock(impl_->mutex);
    impl_->is_changed = true;  // the next compile tries again
  }
  return status;
}

void ArtifactRecorder::Clear() {
  const std::lock_guard lock(impl_->mutex);
  impl_->entries.clear();
  impl_->is_changed = false;
}

CacheBundleInfo ArtifactRecorder::info() const {
  const std::lock_guard lock(impl_->mutex);
  CacheBundleInfo contents;
  for (const auto& [name, variants] : impl_->entries) {
    for (const auto& [hash, bytes] : variants) {
      AddTo(contents, name.first, name.second);
      contents.size_bytes += bytes.size();
    }
  }
  return contents;
}

namespace {

Status Populate(std::string_view bundle, std::string_view path,
                const std::vector<CompileCache*>& caches, CacheBundleInfo* info,
                CallSite location) {
  std::vector<BundleEntry> entries;
  if (Status status = ReadBundle(bundle, entries); !status.ok()) return status;
  CacheBundleInfo contents;
  contents.size_bytes = bundle.size();
  for (const BundleEntry& entry : entries) {
    CompileCache* target = nullptr;
    for (CompileCache* cache : caches) {
      if (cache->layer() == entry.layer) target = cache;
    }
    if (target == nullptr || !target->PutBytes(entry.key, entry.bytes).ok()) {
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
  return Populate(bundle, "", caches, info, location);
}

Status LoadCacheBundle(const std::string& path, const std::vector<CompileCache*>& caches,
                       CacheBundleInfo* info, CallSite location) {
  std::string bundle;
  if (Status status = detail::ReadFile(path, bundle); !status.ok()) return status;
  return Populate(bundle, path, caches, info, location);
}

}  // namespace libtrace
