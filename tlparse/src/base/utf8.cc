#include "base/utf8.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>

namespace tlparse {

bool IsTextSafe(std::string_view bytes) {
  return (bytes.empty() || std::memchr(bytes.data(), '\0', bytes.size()) == nullptr) &&
         simdjson::validate_utf8(bytes.data(), bytes.size());
}

Utf8Sequence FirstUtf8Sequence(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, true};
  // How many bytes follow, and what the second may be (no overlong forms, no surrogates, nothing
  // above U+10FFFF); 0x80 … 0xc1 and 0xf5 … 0xff start nothing.
  std::size_t following = 0;
  unsigned char low = 0x80, high = 0xbf;
  if (first >= 0xc2 && first <= 0xdf) {
    following = 1;
  } else if (first >= 0xe0 && first <= 0xef) {
    following = 2;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
  } else if (first >= 0xf0 && first <= 0xf4) {
    following = 3;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
  } else {
    return {1, false};
  }
  for (std::size_t i = 1; i <= following; ++i) {
    if (i == bytes.size() || byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80;
    high = 0xbf;
  }
  return {following + 1, true};
}

std::string SanitizeUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const auto [length, is_valid] = FirstUtf8Sequence(bytes);
    if (is_valid && bytes.front() != '\0') {
      text.append(bytes.substr(0, length));
    } else {
      text.append("\xef\xbf\xbd");
    }
    bytes.remove_prefix(length);
  }
  return text;
}

}  // namespace tlparse
