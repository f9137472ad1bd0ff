// The file by which a directory is known to be an output of tlparse: only such a directory is ever
// deleted by --overwrite.
#pragma once

#include <string_view>

namespace tlparse {

inline constexpr std::string_view kMarkerFileName = ".tlparse-output";
// One of these files is in every directory that a tlparse wrote, this one or the Rust one; a search
// for logs does not enter such a directory.
inline constexpr std::string_view kOutputFileNames[] = {kMarkerFileName, "compile_directory.json"};

// The folder of such a directory in which `tlparse run` records a command. A search enters it.
inline constexpr std::string_view kRecordedFolder = "recorded";

}  // namespace tlparse
