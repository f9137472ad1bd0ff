// The file by which a directory is known to be an output of tlparse: only such a directory is ever
// deleted by --overwrite.
#pragma once

#include <string_view>

namespace tlparse {

inline constexpr std::string_view kMarkerFileName = ".tlparse-output";
// One of these stands in every directory that a tlparse wrote, ours or the Rust one; a search for
// logs enters none of them.
inline constexpr std::string_view kOutputFileNames[] = {kMarkerFileName, "compile_directory.json"};

}  // namespace tlparse
