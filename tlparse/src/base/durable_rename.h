// Renames a finished file so that it is complete under its new name even after a power failure.
#pragma once

#include <string>

#include "base/result.h"

namespace tlparse {

// Writes the data of the file `from` to the disk, gives it the name `to` (which is replaced), and
// writes the directories of both names to the disk. kIo, with the system's message: `to` is then
// either the old file or the new one.
Result<void> RenameDurably(const std::string& from, const std::string& to);

}  // namespace tlparse
