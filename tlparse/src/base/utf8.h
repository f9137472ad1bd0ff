// Checks and replaces bytes that cannot be stored as SQLite TEXT.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tlparse {

// Whether `bytes` may be stored as SQLite TEXT: valid UTF-8 without NUL (SQLite keeps such text
// but its own functions and most clients cut it at the NUL).
bool IsTextSafe(std::string_view bytes);

// `bytes` with each invalid sequence (the longest prefix of a valid one, else one byte; as the
// WHATWG decoder does) and each NUL replaced by U+FFFD. The result satisfies IsTextSafe.
std::string SanitizeUtf8(std::string_view bytes);

// The character or the invalid sequence (same rule) at the start of `bytes`, which is not empty.
struct Utf8Sequence {
  std::size_t length;
  bool is_valid;
};
Utf8Sequence FirstUtf8Sequence(std::string_view bytes);

}  // namespace tlparse
