// Files that have no name: they are gone when the process is.
#pragma once

#include <string>

#include "base/result.h"

namespace tlparse {

// A descriptor of a new, empty file on the file system of `directory`, for reading and writing; the
// caller closes it. kIo with the system's words.
Result<int> OpenNamelessFile(const std::string& directory);

}  // namespace tlparse
