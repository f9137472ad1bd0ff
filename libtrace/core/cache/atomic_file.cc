#include "core/cache/atomic_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/clock.h"
#include "core/signal_guard.h"

namespace libtrace::detail {
namespace {

Status Failed(std::string_view what, const std::string& path, int error) {
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

Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  const std::string temporary = TemporaryName(path);
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return Failed("cannot create", temporary, errno);
  const bool is_written = WriteAll(fd, bytes);
  int error = is_written ? 0 : errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  unlink(temporary.c_str());
  return Failed("cannot write", path, error);
}

}  // namespace libtrace::detail
