#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <utility>

#include "core/clock.h"
#include "core/errno_scope.h"
#include "core/signal_guard.h"
#include "libtrace/log_format.h"
#include "libtrace/sink.h"

namespace libtrace {
namespace {

[[noreturn]] void Throw(std::string what, const std::string& path, int error) {
  what.append(" ").append(path).append(": ").append(std::strerror(error));
  throw std::runtime_error(what.append("; records are lost and counted until it works again"));
}

// Where descriptors begin that a host does not get for its own files: one that closes all that it
// knows nothing of, as daemons do, and then opens a file must not find records in it.
constexpr int kLowestDescriptor = 256;

// Makes `path` and its parents; true if it is a directory afterwards.
bool MakeDirectories(const std::string& path) {
  for (size_t end = 1; end != std::string::npos && end <= path.size(); ++end) {
    end = path.find('/', end);
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), 0777) != 0 && errno != EEXIST && errno != EISDIR) {
      struct stat status {};
      if (stat(part.c_str(), &status) != 0) return false;  // errno of stat is as good
    }
    if (end == std::string::npos) break;
  }
  return true;
}

std::string RandomName() {
  unsigned char bytes[format::kFileNameRandomSize];
  if (getrandom(bytes, sizeof bytes, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof bytes)) {
    // Early in boot; O_EXCL keeps names unique all the same.
    const auto seed = static_cast<uint64_t>(detail::NowNs()) ^ static_cast<uint64_t>(getpid())
                                                                   << 40;
    std::memcpy(bytes, &seed, sizeof bytes);
  }
  std::string name;
  for (const unsigned char byte : bytes) {
    name += format::kFileNameAlphabet[byte % format::kFileNameAlphabet.size()];
  }
  return name;
}

// Whether the process has a RLIMIT_FSIZE, beyond which a write kills it by SIGXFSZ unless that is
// blocked. Asking the kernel costs a quarter of a short write, so it is asked every 10 ms.
class FileSizeLimit {
 public:
  bool is_set() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const int64_t now_ms = int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
    if (now_ms - asked_at_ms_ < 10) return is_set_;
    asked_at_ms_ = now_ms;
    rlimit limit{};
    is_set_ = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return is_set_;
  }

 private:
  int64_t asked_at_ms_ = -1000;
  bool is_set_ = false;
};

class FileSink : public TraceSink {
 public:
  explicit FileSink(FileSinkOptions options) : options_(std::move(options)) {
    if (options_.directory.empty()) options_.directory += '.';
  }
  ~FileSink() override { CloseFile(); }

  bool BeginRecord(uint64_t size_bytes) override {
    const bool is_full = options_.rotate_size_bytes != 0 && size_bytes_ != 0 &&
                         size_bytes_ + size_bytes > options_.rotate_size_bytes;
    if (fd_ >= 0 && !is_full) return false;
    if (fd_ < 0) return Open(), true;
    try {
      Open();
      return true;
    } catch (const std::runtime_error&) {
      return false;  // better a file that is too large than a record that is lost
    }
  }

  std::shared_ptr<TraceSink> AfterFork() override {
    const int fd = fd_.exchange(-1);
    if (fd >= 0) close(fd);
    return std::make_shared<FileSink>(options_);
  }

  void Close() override { CloseFile(); }
  void Write(std::string_view record) override { WritePart(record, true); }
  bool TakesParts() const override { return true; }
  void WritePart(std::string_view part, bool is_last) override {
    const int fd = fd_;
    if (fd < 0) Throw("cannot write to", options_.directory, EBADF);
    const detail::SignalGuard guard(SIGXFSZ, size_limit_.is_set());
    if (is_torn_) {
      // The end of the file is part of a record that could not be cut off.
      if (write(fd, "\n", 1) != 1) Throw("cannot write to", path_, errno);
      ++size_bytes_;
      is_torn_ = false;
    }
    const char* data = part.data();
    size_t left = part.size();
    while (left > 0) {  // once, but for signals and parts beyond 2 GB
      const ssize_t count = write(fd, data, left);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        const int error = count == 0 ? ENOSPC : errno;
        if (error == EBADF) fd_ = -1;  // the host closed it: the next record opens another file
        const uint64_t unfinished = std::exchange(unfinished_bytes_, 0) + part.size() - left;
        if (unfinished != 0 && ftruncate(fd, static_cast<off_t>(size_bytes_)) != 0) {
          size_bytes_ += unfinished;
          is_torn_ = true;
        }
        Throw("cannot write to", path_, error);
      }
      data += count;
      left -= static_cast<size_t>(count);
    }
    unfinished_bytes_ += part.size();
    if (is_last) size_bytes_ += std::exchange(unfinished_bytes_, 0);
  }
  void SetRank(std::optional<uint32_t> rank) override { options_.rank = rank; }
  std::string path() const override { return fd_ >= 0 ? path_ : std::string(); }

 private:
  struct OldFile {
    std::string path;
    uint64_t size_bytes;
  };

  void Open() {
    const int64_t now_ns = detail::SteadyNs();
    if (now_ns < retry_at_ns_) Throw("cannot open a file in", options_.directory, open_error_);
    const int fd = Create();
    if (fd < 0) {
      open_error_ = errno;
      // A directory that is not there is not tried each time.
      retry_at_ns_ = now_ns + 1'000'000'000;
      Throw("cannot open a file in", options_.directory, open_error_);
    }
    CloseFile();
    if (size_bytes_ != 0) old_files_.push_back({path_, size_bytes_});
    fd_ = fd;
    path_ = new_path_;
    size_bytes_ = 0;
    is_torn_ = false;
    DeleteOldFiles();
  }

  static int MovedUp(int fd) {
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, kLowestDescriptor);
    if (moved < 0) return fd;  // the process may not have so many
    close(fd);
    return moved;
  }

  int Create() {
    if (!MakeDirectories(options_.directory)) return -1;
    for (int attempt = 0; attempt < 100; ++attempt) {
      new_path_ = options_.directory;
      new_path_.append("/").append(format::FormatFileName(options_.rank, RandomName()));
      const int fd =
          open(new_path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      if (fd >= 0) return MovedUp(fd);
      if (errno != EEXIST) return fd;
    }
    errno = EEXIST;
    return -1;
  }

  void DeleteOldFiles() {
    if (options_.budget_size_bytes == 0) return;
    // The file being written may grow to its limit.
    uint64_t sum = options_.rotate_size_bytes;
    for (const OldFile& file : old_files_) sum += file.size_bytes;
    while (sum > options_.budget_size_bytes && !old_files_.empty()) {
      unlink(old_files_.front().path.c_str());  // already gone: as wanted
      sum -= old_files_.front().size_bytes;
      old_files_.pop_front();
    }
  }

  void CloseFile() {
    const int fd = fd_.exchange(-1);
    if (fd >= 0) close(fd);
  }

  FileSinkOptions options_;
  std::atomic<int> fd_{-1};  // a forked child closes it whatever its parent was doing
  std::string path_;
  std::string new_path_;
  uint64_t size_bytes_ = 0;        // of whole records
  uint64_t unfinished_bytes_ = 0;  // of the record that is being written
  bool is_torn_ = false;
  FileSizeLimit size_limit_;
  int64_t retry_at_ns_ = 0;
  int open_error_ = 0;
  std::deque<OldFile> old_files_;  // oldest first
};

}  // namespace

std::shared_ptr<TraceSink> MakeFileSink(FileSinkOptions options) {
  const detail::ErrnoScope keeps_errno;
  return std::make_shared<FileSink>(std::move(options));
}

}  // namespace libtrace
