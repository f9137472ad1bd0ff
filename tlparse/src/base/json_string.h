// The inside of JSON strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tlparse {

// Appends a code point as UTF-8; surrogates are not checked for.
void AppendUtf8(std::uint32_t code_point, std::string& text);

constexpr bool IsHighSurrogate(std::uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
constexpr bool IsLowSurrogate(std::uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }
constexpr std::uint32_t FromSurrogates(std::uint32_t high, std::uint32_t low) {
  return 0x10000 + ((high & 0x3ff) << 10 | (low & 0x3ff));
}

// The value of the four hex digits at the start of `text`; nothing if there are none.
std::optional<std::uint32_t> HexUnit(std::string_view text);

// Decodes the inside of a JSON string; a surrogate without partner becomes U+FFFD. Nothing if an escape is invalid.
std::optional<std::string> UnescapeJson(std::string_view inside);

// For texts that need not be valid JSON: `at` is behind the opening quote of a string. The place behind its closing quote, or
// nullptr if there is none before `end`.
const char* EndOfJsonString(const char* at, const char* end);

}  // namespace tlparse
