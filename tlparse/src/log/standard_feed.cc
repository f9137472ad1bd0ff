#include "log/standard_feed.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/nameless_file.h"

namespace tlparse {

namespace {

constexpr std::size_t kReadBytes = 1 << 20;
constexpr std::size_t kMostBytes = 64 << 20;  // between two steps
constexpr std::size_t kMostFiles = 4096;      // each is a descriptor

// As many descriptors as the system allows this process.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 2 * kMostFiles));
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

Result<void> WriteAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return Fail(ErrorCode::kIo,
                  fmt::format("standard input: cannot be kept: {}", std::strerror(errno)));
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

}  // namespace

StandardFeed::StandardFeed(std::string directory)
    : directory_(std::move(directory)),
      splitter_(
          [this](const std::string& name, std::string_view bytes) { return Keep(name, bytes); }),
      buffer_(kReadBytes, '\0') {
  RaiseDescriptorLimit();
}

Result<void> StandardFeed::Keep(const std::string& name, std::string_view bytes) {
  const std::string path = name.empty() ? "-" : "-/" + name;
  auto known = descriptors_.find(path);
  if (known == descriptors_.end()) {
    if (descriptors_.size() == kMostFiles)
      return Fail(ErrorCode::kUsage,
                  fmt::format("standard input: it names more than {} files", kMostFiles));
    ASSIGN_OR_RETURN(FileDescriptor file, OpenNamelessFile(directory_));
    logs_.push_back(
        {path, RankFromFileName(path), -1, fmt::format("/proc/self/fd/{}", file.get())});
    known = descriptors_.emplace(path, std::move(file)).first;
  }
  return WriteAll(known->second.get(), bytes);
}

Result<bool> StandardFeed::Read(std::chrono::milliseconds longest) {
  const auto end = std::chrono::steady_clock::now() + longest;
  std::size_t taken = 0;
  while (taken < kMostBytes) {
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd waited{STDIN_FILENO, POLLIN, 0};
    const int ready = poll(&waited, 1, static_cast<int>(std::max<long>(0, rest.count())));
    if (ready < 0) return true;  // a signal
    if (ready == 0) break;
    const ssize_t count = ::read(STDIN_FILENO, buffer_.data(), buffer_.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (count < 0)
      return Fail(ErrorCode::kIo,
                  fmt::format("standard input: cannot be read: {}", std::strerror(errno)));
    if (count == 0) {
      RETURN_IF_ERROR(splitter_.End());
      return false;
    }
    taken += static_cast<std::size_t>(count);
    RETURN_IF_ERROR(splitter_.Add({buffer_.data(), static_cast<std::size_t>(count)}));
  }
  if (taken == 0) RETURN_IF_ERROR(splitter_.Pause());
  return true;
}

}  // namespace tlparse
