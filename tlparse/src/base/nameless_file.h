// Temporary files without a name: they disappear when the process ends.
#pragma once

#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace tlparse {

// A new, empty file on the file system of `directory`, for reading and writing. kIo with the system's
// message; errno is then that of the failure.
Result<FileDescriptor> OpenNamelessFile(const std::string& directory);

}  // namespace tlparse
