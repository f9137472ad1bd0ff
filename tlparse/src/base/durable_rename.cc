#include "base/durable_rename.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace tlparse {
namespace {

// File systems without a disk of their own cannot sync a directory and say so.
bool CannotSync(int error) { return error == EINVAL || error == EROFS || error == ENOTSUP; }

Result<void> Sync(const std::string& path, int flags) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC);
  int error = file < 0 ? errno : 0;
  if (error == 0 && ::fsync(file) != 0 && !CannotSync(errno)) error = errno;
  if (file >= 0) ::close(file);
  if (error == 0) return {};
  return Fail(ErrorCode::kIo,
              fmt::format("cannot write '{}' to the disk: {}", path, std::strerror(error)));
}

std::string DirectoryOf(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  return directory.empty() ? "." : directory;
}

}  // namespace

Result<void> RenameDurably(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Sync(from, O_RDONLY));
  if (::rename(from.c_str(), to.c_str()) != 0) {
    return Fail(ErrorCode::kIo, fmt::format("cannot write '{}': {}", to, std::strerror(errno)));
  }
  RETURN_IF_ERROR(Sync(DirectoryOf(to), O_RDONLY | O_DIRECTORY));
  if (DirectoryOf(from) == DirectoryOf(to)) return {};
  return Sync(DirectoryOf(from), O_RDONLY | O_DIRECTORY);
}

}  // namespace tlparse
