#include "inputs/common/pickle_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/json_string.h"

namespace tlparse {

std::string DecodeRawUnicodeEscape(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const std::size_t digits = line.substr(i, 2) == "\\u" ? 4 : line.substr(i, 2) == "\\U" ? 8 : 0;
    std::uint32_t point = 0;
    const std::string_view hex = line.substr(std::min(i + 2, line.size()), digits);
    const char* const end = hex.data() + hex.size();
    if (digits > 0 && hex.size() == digits &&
        std::from_chars(hex.data(), end, point, 16).ptr == end && point <= 0x10FFFF) {
      AppendUtf8(point, text);
      i += 1 + digits;
    } else {
      AppendUtf8(static_cast<unsigned char>(line[i]), text);
    }
  }
  return text;
}

}  // namespace tlparse
