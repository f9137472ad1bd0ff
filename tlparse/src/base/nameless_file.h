// Temporary files without a name: they disappear when the process ends.
#pragma once

#include <string>

#include "base/result.h"

namespace tlparse {

// A descriptor of a new, empty file on the file system of `directory`, for reading and writing; the
// caller closes it. kIo with the system's message.
Result<int> OpenNamelessFile(const std::string& directory);

}  // namespace tlparse
