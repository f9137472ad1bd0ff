// A finished file takes its place so that it is whole there whatever happens, a power cut included.
#pragma once

#include <string>

#include "base/result.h"

namespace tlparse {

// Writes the data of the file `from` to the disk, gives it the name `to` (which is replaced), and
// writes the directories of both names to the disk. kIo, with the system's words: what was at `to`
// is still there, or the new file is.
Result<void> RenameDurably(const std::string& from, const std::string& to);

}  // namespace tlparse
