#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <system_error>

#include "core/cache/atomic_file.h"
#include "core/cache/byte_coder.h"
#include "core/clock.h"
#include "core/digest.h"
#include "core/errno_scope.h"
#include "core/per_process.h"
#include "libtrace/cache/cache_store.h"

namespace libtrace {
namespace {

namespace fs = std::filesystem;

// Files without a head: temporary ones and artifacts of writers that died, and lock files.
constexpr std::chrono::hours kStaleAfter{1};
constexpr std::string_view kHeadSuffix = ".head";
constexpr std::string_view kClaimName = ".claim";
// How long after a compile others take its claim for done rather than free.
constexpr std::chrono::seconds kFinishedFor{10};
constexpr char kCompilingByte = 'c', kFinishedByte = 'f';

struct FoundFile {
  fs::path path;
  fs::file_time_type used_at;
  uint64_t size_bytes;
};

constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

Status CheckName(std::string_view key, std::string_view content_hash = "none") {
  if (key.size() < 4 || key.size() > 200 ||
      key.find_first_not_of(kNameCharacters) != std::string_view::npos) {
    return Status::Error("cache key has characters that no key has");
  }
  if (content_hash.empty() || content_hash.size() > 200 ||
      content_hash.find_first_not_of(kNameCharacters) != std::string_view::npos) {
    return Status::Error("content hash has characters that none has");
  }
  return {};
}

// Files that disappear meanwhile (another process evicts too) are left out.
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
  struct Size {
    std::mutex mutex;  // one eviction at a time, and the fields below
    bool is_measured = false;
    LocalStoreStats stats;
  };
  detail::PerProcess<Size> size;

  fs::path KeyDirectory(std::string_view key) const { return directory / key.substr(1, 2) / key; }

  // Adds `added_bytes` and evicts if that is too much. Sizes of files that other processes wrote
  // are seen whenever the limit is reached, because everything is listed then.
  void Grow(uint64_t added_bytes) {
    if (max_size_bytes == 0) return;
    Size& mine = size.get();
    const std::lock_guard lock(mine.mutex);
    LocalStoreStats& stats = mine.stats;
    stats.size_bytes += added_bytes;
    if (mine.is_measured && stats.size_bytes <= max_size_bytes) return;
    mine.is_measured = true;
    std::vector<FoundFile> files = ListFiles(directory, true);
    uint64_t sum = 0;
    for (const FoundFile& file : files) sum += file.size_bytes;
    if (sum > max_size_bytes) sum -= Evict(files, sum - max_size_bytes / 10 * 9, stats);
    stats.size_bytes = sum;
  }

  // The head of an entry goes before its artifact; both are as old as the head, which is what a
  // hit touches.
  static uint64_t Evict(std::vector<FoundFile>& files, uint64_t wanted_bytes,
                        LocalStoreStats& stats) {
    std::map<fs::path, fs::file_time_type> heads;  // by the path of the artifact
    for (const FoundFile& file : files) {
      if (file.path.extension() == kHeadSuffix && IsEntry(file))
        heads.emplace(fs::path(file.path).replace_extension(), file.used_at);
    }
    for (FoundFile& file : files) {
      if (const auto head = heads.find(file.path); head != heads.end()) file.used_at = head->second;
    }
    std::sort(files.begin(), files.end(), [](const FoundFile& a, const FoundFile& b) {
      if (a.used_at != b.used_at) return a.used_at < b.used_at;
      return a.path.native() > b.path.native();  // X.head before X
    });
    const auto now = fs::file_time_type::clock::now();
    uint64_t freed_bytes = 0;
    bool is_in_entry = false;  // its head went: so does its artifact
    for (const FoundFile& file : files) {
      const bool is_head = file.path.extension() == kHeadSuffix && IsEntry(file);
      if (freed_bytes >= wanted_bytes && !is_in_entry) break;
      const bool is_artifact = heads.count(file.path) != 0;
      is_in_entry = is_head;
      // Without a head: being written, or left by a writer that died.
      if (!is_head && !is_artifact && now - file.used_at < kStaleAfter) continue;
      std::error_code error;
      if (!fs::remove(file.path, error)) continue;
      freed_bytes += file.size_bytes;
      if (is_head) ++stats.evicted_count;
      fs::remove(file.path.parent_path(), error);  // if it was the last file of its key
    }
    return freed_bytes;
  }

  static bool IsEntry(const FoundFile& file) {
    return !file.path.filename().native().starts_with('.');
  }

  fs::path ArtifactPath(std::string_view key, std::string_view content_hash) const {
    return KeyDirectory(key) / content_hash;
  }
  fs::path HeadPath(std::string_view key, std::string_view content_hash) const {
    return KeyDirectory(key) / std::string(content_hash).append(kHeadSuffix);
  }
  // Whether the entry is there whole, as far as sizes tell.
  bool Has(std::string_view key, const StoredEntry& entry) const {
    std::error_code error;
    return fs::file_size(ArtifactPath(key, entry.content_hash), error) ==
               entry.artifact_size_bytes &&
           fs::is_regular_file(HeadPath(key, entry.content_hash), error);
  }
};

namespace {

// Descriptors of claims, which the children of this process close: the kernel gives a lock back with
// its last descriptor, and a child may live on when its parent was killed.
struct ClaimFiles {
  std::mutex mutex;
  std::set<int> descriptors;
};
// Never destroyed: threads may compile while the process ends.
constinit ClaimFiles* g_claim_files = nullptr;

// When the program is loaded, before objects that may use a cache are made: at a first use another
// thread might fork in the middle of it.
[[gnu::constructor(101)]] void MakeClaimFiles() {
  g_claim_files = new ClaimFiles;
  pthread_atfork([] { g_claim_files->mutex.lock(); }, [] { g_claim_files->mutex.unlock(); },
                 [] {
                   for (const int fd : g_claim_files->descriptors) close(fd);
                   g_claim_files = new ClaimFiles;
                 });
}

// A lock on a file, which the kernel gives back with the process. The file says whether its last
// holder finished.
class FileClaim : public CacheClaim {
 public:
  explicit FileClaim(int fd) : fd_(fd), pid_(getpid()) {}
  ~FileClaim() override {
    const detail::ErrnoScope keeps_errno;
    if (pid_ != getpid()) return;  // closed already
    flock(fd_, LOCK_UN);           // also for programs that are just being started
    ClaimFiles& files = *g_claim_files;
    const std::lock_guard lock(files.mutex);
    files.descriptors.erase(fd_);
    close(fd_);
  }
  void Finish() noexcept override {
    const detail::ErrnoScope keeps_errno;
    [[maybe_unused]] const ssize_t written = pwrite(fd_, &kFinishedByte, 1, 0);
  }

 private:
  int fd_;
  pid_t pid_;
};

bool HasJustFinished(int fd) {
  char state = 0;
  struct stat info {};
  if (pread(fd, &state, 1, 0) != 1 || state != kFinishedByte || fstat(fd, &info) != 0) return false;
  const auto age = std::chrono::system_clock::now() -
                   std::chrono::system_clock::from_time_t(info.st_mtim.tv_sec);
  return age < kFinishedFor;
}

}  // namespace

LocalStore::LocalStore(std::string directory, uint64_t max_size_bytes) {
  const detail::ErrnoScope keeps_errno;
  impl_ = std::make_unique<Impl>();
  impl_->directory = std::move(directory);
  impl_->max_size_bytes = max_size_bytes;
}
LocalStore::~LocalStore() = default;

Status LocalStore::List(std::string_view key, std::vector<StoredEntry>& entries) {
  const detail::ErrnoScope keeps_errno;
  entries.clear();
  if (Status status = CheckName(key); !status.ok()) return status;
  std::vector<FoundFile> files = ListFiles(impl_->KeyDirectory(key), false);
  std::sort(files.begin(), files.end(),
            [](const FoundFile& a, const FoundFile& b) { return a.used_at > b.used_at; });
  for (const FoundFile& file : files) {
    if (!Impl::IsEntry(file) || file.path.extension() != kHeadSuffix) continue;
    if (file.size_bytes > kMaxHeadBytes + 8) continue;
    std::string bytes;
    std::shared_ptr<const ArtifactFile> opened;
    if (!ArtifactFile::Open(file.path.native(), opened).ok()) continue;
    const auto append = [&](std::string_view piece) { return bytes.append(piece), true; };
    if (!detail::ReadChunks(opened->descriptor(), append, 0, file.size_bytes).ok()) continue;
    detail::ByteReader reader(bytes);
    const uint64_t artifact_size_bytes = reader.U64();
    entries.push_back({file.path.stem().native(), std::string(reader.rest()), artifact_size_bytes});
  }
  return {};
}

Status LocalStore::Open(std::string_view key, const StoredEntry& entry,
                        std::shared_ptr<const ArtifactFile>& file) {
  const detail::ErrnoScope keeps_errno;
  if (Status status = CheckName(key, entry.content_hash); !status.ok()) return status;
  return ArtifactFile::Open(impl_->ArtifactPath(key, entry.content_hash).native(), file);
}

Status LocalStore::Load(std::string_view key, const StoredEntry& entry, ChunkSink sink) {
  const detail::ErrnoScope keeps_errno;
  std::shared_ptr<const ArtifactFile> file;
  if (Status status = Open(key, entry, file); !status.ok()) return status;
  return detail::ReadChunks(file->descriptor(), sink);
}

Status LocalStore::Put(std::string_view key, const StoredEntry& entry, ArtifactSource artifact) {
  const detail::ErrnoScope keeps_errno;
  if (Status status = CheckName(key, entry.content_hash); !status.ok()) return status;
  const uint64_t size_bytes = entry.head.size() + 8 + entry.artifact_size_bytes;
  if (impl_->max_size_bytes != 0 && size_bytes > impl_->max_size_bytes / 10 * 9) {
    return Status::Error("entry is larger than the cache may be");
  }
  if (impl_->Has(key, entry)) {
    Touch(key, entry.content_hash);
    return {};
  }
  std::string head;
  detail::PutU64(entry.artifact_size_bytes, head);
  head += entry.head;
  Status status;
  // Again if another process removed the directory, empty for a moment, while evicting.
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::error_code error;
    fs::create_directories(impl_->KeyDirectory(key), error);
    const fs::path artifact_path = impl_->ArtifactPath(key, entry.content_hash);
    const fs::path head_path = impl_->HeadPath(key, entry.content_hash);
    status = detail::WriteFileAtomically(artifact_path.native(), artifact);
    if (status.ok()) status = detail::WriteFileAtomically(head_path.native(), head);
    if (status.ok()) break;
    // A file is renamed over everything but a directory.
    for (const fs::path& path : {artifact_path, head_path}) {
      if (fs::is_directory(fs::symlink_status(path, error))) fs::remove_all(path, error);
    }
  }
  if (status.ok()) impl_->Grow(size_bytes);
  return status;
}

Status LocalStore::Remove(std::string_view key) {
  const detail::ErrnoScope keeps_errno;
  if (Status status = CheckName(key); !status.ok()) return status;
  std::error_code error;
  fs::remove_all(impl_->KeyDirectory(key), error);
  return error ? Status::Error("cannot remove a cache entry: " + error.message()) : Status();
}

Status LocalStore::RemoveEntry(std::string_view key, const StoredEntry& entry) {
  const detail::ErrnoScope keeps_errno;
  if (Status status = CheckName(key, entry.content_hash); !status.ok()) return status;
  std::error_code error;
  if (fs::remove(impl_->HeadPath(key, entry.content_hash), error)) {
    Impl::Size& mine = impl_->size.get();
    const std::lock_guard lock(mine.mutex);
    ++mine.stats.damaged_count;
  }
  fs::remove(impl_->ArtifactPath(key, entry.content_hash), error);
  return {};
}

void LocalStore::Touch(std::string_view key, std::string_view content_hash) {
  const detail::ErrnoScope keeps_errno;
  if (!CheckName(key, content_hash).ok()) return;
  utimensat(AT_FDCWD, impl_->HeadPath(key, content_hash).c_str(), nullptr, 0);
}

ClaimState LocalStore::Claim(std::string_view key, std::unique_ptr<CacheClaim>& claim) {
  const detail::ErrnoScope keeps_errno;
  if (!CheckName(key).ok()) return ClaimState::kUnavailable;
  const fs::path directory = impl_->KeyDirectory(key);
  std::error_code error;
  fs::create_directories(directory, error);
  ClaimFiles& files = *g_claim_files;
  const std::lock_guard lock(files.mutex);  // no fork in between
  // A lock is a file's: one that is a link to another key's, or a device, would be that one's too.
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int fd = open((directory / kClaimName).c_str(), kFlags, 0666);
  if (fd < 0) return ClaimState::kUnavailable;
  ClaimState state = ClaimState::kGranted;
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink > 1) {
    state = ClaimState::kUnavailable;
  } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    state = errno == EWOULDBLOCK ? ClaimState::kHeld : ClaimState::kUnavailable;
  } else if (HasJustFinished(fd)) {
    state = ClaimState::kFinished;
  } else if (pwrite(fd, &kCompilingByte, 1, 0) != 1) {
    state = ClaimState::kUnavailable;
  }
  if (state == ClaimState::kGranted) {
    files.descriptors.insert(fd);
    claim = std::make_unique<FileClaim>(fd);
  } else {
    close(fd);
  }
  return state;
}

LocalStoreStats LocalStore::stats() const {
  const detail::ErrnoScope keeps_errno;
  Impl::Size& mine = impl_->size.get();
  const std::lock_guard lock(mine.mutex);
  return mine.stats;
}

}  // namespace libtrace
