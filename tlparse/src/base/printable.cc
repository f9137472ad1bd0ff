#include "base/printable.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace tlparse {
namespace {

// Characters that change how a terminal shows what follows.
bool IsHostile(char32_t c) {
  return c < 0x20 || c == 0x7F || (c >= 0x80 && c < 0xA0) || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0x200E || c == 0x200F || c == 0x2028 || c == 0x2029;
}

}  // namespace

char32_t NextCodePoint(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char first = byte(at);
  const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  char32_t value = length == 1 ? first : first & (0x7F >> length);
  for (std::size_t index = 1; index < length; ++index)
    value = value << 6 | (byte(at + index) & 0x3F);
  at += length;
  return value;
}

std::string Printable(std::string_view text, bool keep_newlines) {
  const std::string safe = SanitizeUtf8(text);
  std::string result;
  result.reserve(safe.size());
  for (std::size_t at = 0; at < safe.size();) {
    const std::size_t begin = at;
    const char32_t c = NextCodePoint(safe, at);
    if (c == '\n') {
      result += keep_newlines ? "\n" : "⏎";
    } else if (c == '\t') {
      result += keep_newlines ? "\t" : " ";
    } else if (IsHostile(c)) {
      result += c < 0x100 ? fmt::format("\\x{:02x}", static_cast<unsigned>(c))
                          : fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result.append(safe, begin, at - begin);
    }
  }
  return result;
}

std::string PrintableJson(std::string_view json) {
  const std::string safe = SanitizeUtf8(json);
  std::string result;
  result.reserve(safe.size());
  for (std::size_t at = 0; at < safe.size();) {
    const std::size_t begin = at;
    const char32_t c = NextCodePoint(safe, at);
    // A control character below 0x20 in JSON is white space between tokens.
    if (c >= 0x20 && IsHostile(c)) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result.append(safe, begin, at - begin);
    }
  }
  return result;
}

}  // namespace tlparse
