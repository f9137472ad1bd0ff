#include "import/empty_database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tlparse {
namespace {

bool WriteAt(int file, std::string_view bytes, off_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
    offset += count;
  }
  return true;
}

}  // namespace

Result<void> WriteEmptyDatabase(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  const DatabaseImage& image = EmptyDatabaseImage();
  bool is_written = file >= 0 && ::ftruncate(file, image.size) == 0;
  for (const DatabaseImage::Part& part : image.parts) {
    is_written = is_written && WriteAt(file, part.bytes, part.offset);
  }
  const int error = errno;
  if (file >= 0) ::close(file);
  if (is_written) return {};
  return Fail(ErrorCode::kIo,
              fmt::format("cannot write the database '{}': {}", path, std::strerror(error)));
}

}  // namespace tlparse
