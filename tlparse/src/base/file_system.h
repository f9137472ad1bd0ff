// What file system a directory is on.
#pragma once

#include <cstdint>
#include <string>

namespace tlparse {

// Whether a file system of this type (statfs f_type) is one of other machines or of a user process,
// where the shared memory of SQLite's write-ahead log does not work.
bool IsNetworkFileSystem(std::uint32_t type);
// The same of the directory's; false if it cannot be asked.
bool IsOnNetwork(const std::string& directory);

}  // namespace tlparse
