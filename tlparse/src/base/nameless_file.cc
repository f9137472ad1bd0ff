#include "base/nameless_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace tlparse {

Result<FileDescriptor> OpenNamelessFile(const std::string& directory) {
  int descriptor = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor >= 0) return FileDescriptor(descriptor);
  // Some file systems have no files without a name.
  std::string name = directory + "/.tlparse-XXXXXX";
  descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0)
    return Fail(ErrorCode::kIo, fmt::format("{}: no temporary file can be made there: {}",
                                            directory, std::strerror(errno)));
  ::unlink(name.c_str());
  return FileDescriptor(descriptor);
}

}  // namespace tlparse
