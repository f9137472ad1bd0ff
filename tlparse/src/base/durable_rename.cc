#include "base/durable_rename.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/file_descriptor.h"

namespace tlparse {
namespace {

// Some file systems, network ones among them, cannot sync a directory.
bool CannotSync(int error) { return error == EINVAL || error == EROFS || error == ENOTSUP; }

Result<void> Sync(const std::string& path, int flags) {
  const FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC));
  int error = file.is_open() ? 0 : errno;
  if (error == 0 && ::fsync(file.get()) != 0 && !CannotSync(errno)) error = errno;
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
