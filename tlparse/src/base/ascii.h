// Kinds of characters, whatever the locale.
#pragma once

namespace tlparse {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool IsAlphanumeric(char c) { return IsLetter(c) || IsDigit(c); }
// \w of a regular expression.
constexpr bool IsWordCharacter(char c) { return IsAlphanumeric(c) || c == '_'; }

}  // namespace tlparse
