// Character classes, independent of the locale.
#pragma once

#include <string_view>

namespace tlparse {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr char LowerAscii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr bool IsAlphanumeric(char c) { return IsLetter(c) || IsDigit(c); }
constexpr bool IsJsonSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
// \w of a regular expression.
constexpr bool IsWordCharacter(char c) { return IsAlphanumeric(c) || c == '_'; }
// Characters of Python's identifiers; every byte of UTF-8 beyond ASCII counts as one.
constexpr bool IsNameStart(char c) {
  return IsLetter(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
constexpr bool IsNameCharacter(char c) { return IsNameStart(c) || IsDigit(c); }
// The alphabet of PyTorch's hashes: base32 of RFC 4648 in lower case.
constexpr bool IsBase32(char c) { return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7'); }

// `text` without blanks, tabs and carriage returns at its ends; points into `text`.
constexpr std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace tlparse
