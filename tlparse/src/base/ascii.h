// Character classes, independent of the locale.
#pragma once

#include <string>
#include <string_view>

namespace tlparse {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsUpperCase(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool IsLowerCase(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool IsLetter(char c) { return IsLowerCase(c) || IsUpperCase(c); }
constexpr char LowerAscii(char c) { return IsUpperCase(c) ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr char UpperAscii(char c) { return IsLowerCase(c) ? static_cast<char>(c - 'a' + 'A') : c; }
inline std::string InLowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = LowerAscii(c);
  return lower;
}
// 0 to 15; -1: no digit of a hexadecimal number.
constexpr int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = LowerAscii(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}
// A digit of the hashes that programs write: no capital letter.
constexpr bool IsLowerHex(char c) { return HexDigit(c) >= 0 && !IsUpperCase(c); }
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
constexpr bool IsBase32(char c) { return IsLowerCase(c) || (c >= '2' && c <= '7'); }

// `text` without blanks, tabs and carriage returns at its ends; points into `text`.
constexpr std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace tlparse
