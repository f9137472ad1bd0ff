// The file by which a directory is known to be an output of tlparse: only such a directory is ever
// deleted by --overwrite, and a search for logs does not enter one.
#pragma once

#include <string_view>

namespace tlparse {

inline constexpr std::string_view kMarkerFileName = ".tlparse-output";

}  // namespace tlparse
