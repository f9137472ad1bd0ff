// What may be stored as text.
#pragma once

#include <string>
#include <string_view>

namespace tlparse {

// Whether `bytes` may be stored as SQLite TEXT: valid UTF-8 without NUL (SQLite keeps such text
// but its own functions and most clients cut it at the NUL).
bool IsTextSafe(std::string_view bytes);

// `bytes` with each invalid sequence (the longest prefix of a valid one, else one byte; as the
// WHATWG decoder does) and each NUL replaced by U+FFFD. The result satisfies IsTextSafe.
std::string SanitizeUtf8(std::string_view bytes);

}  // namespace tlparse
