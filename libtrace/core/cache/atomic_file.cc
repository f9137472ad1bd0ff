#include "core/cache/atomic_file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/clock.h"
#include "core/errno_scope.h"
#include "core/signal_guard.h"
#include "libtrace/cache/artifact_file.h"

namespace libtrace::detail {
namespace {

Status Failed(std::string_view what, std::string_view path, int error) {
  std::string message(what);
  return Status::Error(message.append(" ").append(path).append(": ").append(std::strerror(error)));
}

bool WriteAll(int fd, std::string_view bytes) {
  const SignalGuard guard(SIGXFSZ);
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

std::string TemporaryName(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  const size_t slash = path.rfind('/');
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  std::string temporary = path.substr(0, name);
  return temporary.append(".")
      .append(std::to_string(getpid()))
      .append(".")
      .append(std::to_string(SteadyNs()))
      .append(".")
      .append(std::to_string(counter.fetch_add(1)));
}

}  // namespace

Status ReadFile(const std::string& path, std::string& bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Failed("cannot open", path, errno);
  struct stat info {};
  bytes.clear();
  if (fstat(fd, &info) == 0 && info.st_size > 0) bytes.reserve(static_cast<size_t>(info.st_size));
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      close(fd);
      return Failed("cannot read", path, error);
    }
    if (count == 0) break;
    bytes.append(buffer, static_cast<size_t>(count));
  }
  close(fd);
  return {};
}

Status ReadChunks(int fd, ChunkSink sink, uint64_t offset, uint64_t size_bytes) {
  std::string buffer(std::min<uint64_t>(1 << 20, size_bytes), '\0');
  while (size_bytes > 0) {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(buffer.size(), size_bytes));
    const ssize_t count = pread(fd, buffer.data(), wanted, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed("cannot read", "the file of an artifact", errno);
    if (count == 0) break;
    offset += static_cast<uint64_t>(count);
    size_bytes -= static_cast<uint64_t>(count);
    if (!sink({buffer.data(), static_cast<size_t>(count)}))
      return Status::Error("the transfer of an artifact was stopped");
  }
  return {};
}

namespace {

// Not ok: `source` failed, or the file cannot be written.
Status Fill(int fd, const std::string& path, ArtifactSource source) {
  Status write_status;
  Status status = source([&](std::string_view chunk) {
    if (!WriteAll(fd, chunk)) write_status = Failed("cannot write", path, errno);
    return write_status.ok();
  });
  return write_status.ok() ? status : write_status;
}

}  // namespace

Status WriteUnnamedFile(const std::string& directory, ArtifactSource source, int& fd) {
  std::string path = directory;
  if (path.empty()) {
    const char* temporary = secure_getenv("TMPDIR");
    path = temporary != nullptr && *temporary != '\0' ? temporary : "/tmp";
  }
  path += "/libtrace_XXXXXX";
  fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return Failed("cannot create", path, errno);
  unlink(path.c_str());
  Status status = Fill(fd, path, source);
  if (!status.ok()) {
    close(fd);
    fd = -1;
  }
  return status;
}

Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  return WriteFileAtomically(path, [bytes](ChunkSink sink) {
    return sink(bytes) ? Status() : Status::Error("a file could not be written");
  });
}

Status WriteFileAtomically(const std::string& path, ArtifactSource source) {
  const std::string temporary = TemporaryName(path);
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return Failed("cannot create", temporary, errno);
  Status status = Fill(fd, path, source);
  if (close(fd) != 0 && status.ok()) status = Failed("cannot write", path, errno);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0)
    status = Failed("cannot write", path, errno);
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace libtrace::detail

namespace libtrace {

ArtifactFile::ArtifactFile(int fd, uint64_t size_bytes)
    : fd_(fd), size_bytes_(size_bytes), path_("/proc/self/fd/" + std::to_string(fd)) {}
ArtifactFile::~ArtifactFile() {
  const detail::ErrnoScope keeps_errno;
  close(fd_);
}

Status ArtifactFile::Open(const std::string& path, std::shared_ptr<const ArtifactFile>& file) {
  const detail::ErrnoScope keeps_errno;
  // Does not wait for the other end if it is a pipe.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return detail::Failed("cannot open", path, errno);
  return FromDescriptor(fd, file);
}

Status ArtifactFile::FromDescriptor(int fd, std::shared_ptr<const ArtifactFile>& file) {
  const detail::ErrnoScope keeps_errno;
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return Status::Error("an artifact's file is not a regular file");
  }
  file.reset(new ArtifactFile(fd, static_cast<uint64_t>(info.st_size)));
  return {};
}

}  // namespace libtrace
