// Finds and replaces invalid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace libtrace::detail {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct DecodedCharacter {
  uint32_t code_point;  // U+FFFD if !is_valid
  uint32_t size;        // bytes to skip, at least 1: of the maximal valid prefix if it is broken
  bool is_valid;
};

// Decodes the character at `text[offset]`. Overlong forms, surrogates and values beyond U+10FFFF
// are broken, as the Unicode standard (table 3-7) says.
DecodedCharacter DecodeUtf8(std::string_view text, size_t offset);

// Offset of the first broken character, or npos.
size_t FindBrokenUtf8(std::string_view text);

// `text` with every broken piece replaced by U+FFFD; `broken` is what FindBrokenUtf8 returned.
std::string RepairUtf8(std::string_view text, size_t broken);

}  // namespace libtrace::detail
