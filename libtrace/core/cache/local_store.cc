#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "core/cache/atomic_file.h"
#include "core/clock.h"
#include "core/digest.h"
#include "libtrace/cache/cache_store.h"

namespace libtrace {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::hours kStaleAfter{1};  // temporary files of writers that died

struct FoundFile {
  fs::path path;
  fs::file_time_type used_at;
  uint64_t size_bytes;
};

bool IsGoodKey(std::string_view key) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return key.size() >= 4 && key.size() <= 200 &&
         key.find_first_not_of(kAllowed) == std::string_view::npos;
}

// Whatever vanishes meanwhile (another process evicts too) is left out.
std::vector<FoundFile> ListFiles(const fs::path& directory, bool is_recursive) {
  std::vector<FoundFile> files;
  const auto add = [&](const fs::directory_entry& entry) {
    std::error_code error;
    if (!entry.is_regular_file(error) || error) return;
    const uint64_t size = entry.file_size(error);
    if (error) return;
    const fs::file_time_type used_at = entry.last_write_time(error);
    if (!error) files.push_back({entry.path(), used_at, size});
  };
  std::error_code error;
  if (is_recursive) {
    fs::recursive_directory_iterator it(directory, error), end;
    while (!error && it != end) {
      add(*it);
      it.increment(error);
    }
  } else {
    fs::directory_iterator it(directory, error), end;
    while (!error && it != end) {
      add(*it);
      it.increment(error);
    }
  }
  return files;
}

}  // namespace

struct LocalStore::Impl {
  fs::path directory;
  uint64_t max_size_bytes;
  std::mutex mutex;  // one eviction at a time, and the fields below
  bool is_measured = false;
  LocalStoreStats stats;

  fs::path KeyDirectory(std::string_view key) const { return directory / key.substr(1, 2) / key; }

  // Adds `added_bytes` and evicts if that is too much. Sizes of files that other processes wrote
  // are seen whenever the limit is reached, because everything is listed then.
  void Grow(uint64_t added_bytes) {
    if (max_size_bytes == 0) return;
    const std::lock_guard lock(mutex);
    stats.size_bytes += added_bytes;
    if (is_measured && stats.size_bytes <= max_size_bytes) return;
    is_measured = true;
    std::vector<FoundFile> files = ListFiles(directory, true);
    uint64_t sum = 0;
    for (const FoundFile& file : files) sum += file.size_bytes;
    if (sum > max_size_bytes) sum -= Evict(files, sum - max_size_bytes / 10 * 9);
    stats.size_bytes = sum;
  }

  uint64_t Evict(std::vector<FoundFile>& files, uint64_t wanted_bytes) {
    std::sort(files.begin(), files.end(),
              [](const FoundFile& a, const FoundFile& b) { return a.used_at < b.used_at; });
    const auto now = fs::file_time_type::clock::now();
    uint64_t freed_bytes = 0;
    for (const FoundFile& file : files) {
      if (freed_bytes >= wanted_bytes) break;
      const bool is_temporary = file.path.filename().native().starts_with('.');
      if (is_temporary && now - file.used_at < kStaleAfter) continue;  // being written
      std::error_code error;
      if (!fs::remove(file.path, error)) continue;
      freed_bytes += file.size_bytes;
      if (!is_temporary) ++stats.evicted_count;
      fs::remove(file.path.parent_path(), error);  // if it was the last entry of its key
    }
    return freed_bytes;
  }
};

LocalStore::LocalStore(std::string directory, uint64_t max_size_bytes)
    : impl_(std::make_unique<Impl>()) {
  impl_->directory = std::move(directory);
  impl_->max_size_bytes = max_size_bytes;
}
LocalStore::~LocalStore() = default;

Status LocalStore::Get(std::string_view key, std::vector<StoredEntry>& entries) {
  entries.clear();
  if (!IsGoodKey(key)) return Status::Error("cache key has characters that no key has");
  std::vector<FoundFile> files = ListFiles(impl_->KeyDirectory(key), false);
  std::sort(files.begin(), files.end(),
            [](const FoundFile& a, const FoundFile& b) { return a.used_at > b.used_at; });
  for (const FoundFile& file : files) {
    const std::string name = file.path.filename().native();
    if (name.starts_with('.')) continue;
    StoredEntry entry{name, {}};
    if (!detail::ReadFile(file.path.native(), entry.bytes).ok()) continue;
    if (detail::Base32Key(detail::Sha256Of(entry.bytes)) != name) {
      std::error_code error;
      fs::remove(file.path, error);
      const std::lock_guard lock(impl_->mutex);
      ++impl_->stats.damaged_count;
      continue;
    }
    entries.push_back(std::move(entry));
  }
  return {};
}

Status LocalStore::Put(std::string_view key, const StoredEntry& entry) {
  if (!IsGoodKey(key)) return Status::Error("cache key has characters that no key has");
  if (impl_->max_size_bytes != 0 && entry.bytes.size() > impl_->max_size_bytes / 10 * 9) {
    return Status::Error("entry is larger than the cache may be");
  }
  const fs::path directory = impl_->KeyDirectory(key);
  Status status;
  // Again if another process removed the directory, empty for a moment, while evicting.
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::error_code error;
    fs::create_directories(directory, error);
    status = detail::WriteFileAtomically((directory / entry.content_hash).native(), entry.bytes);
    if (status.ok()) break;
  }
  if (status.ok()) impl_->Grow(entry.bytes.size());
  return status;
}

Status LocalStore::Remove(std::string_view key) {
  if (!IsGoodKey(key)) return Status::Error("cache key has characters that no key has");
  std::error_code error;
  fs::remove_all(impl_->KeyDirectory(key), error);
  return error ? Status::Error("cannot remove a cache entry: " + error.message()) : Status();
}

void LocalStore::Touch(std::string_view key, std::string_view content_hash) {
  if (!IsGoodKey(key)) return;
  const std::string path = (impl_->KeyDirectory(key) / content_hash).native();
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

LocalStoreStats LocalStore::stats() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->stats;
}

}  // namespace libtrace
