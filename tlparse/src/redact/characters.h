// Classes of characters in the texts that are redacted.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/ascii.h"

namespace tlparse::redact {

// Bytes beyond ASCII are letters: no word of PyTorch has them.
inline bool IsWordLetter(char c) { return IsLetter(c) || static_cast<unsigned char>(c) >= 0x80; }
inline bool IsPathCharacter(char c) {
  return IsNameCharacter(c) || c == '/' || c == '.' || c == '-' || c == '~' || c == '+' ||
         c == '@' || c == '%';
}

inline std::string_view WithoutUnderscores(std::string_view name) {
  while (name.starts_with('_')) name.remove_prefix(1);
  while (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

// The end of the run of characters of a class that begins at `at`.
template <typename Class>
std::size_t RunEnd(std::string_view text, std::size_t at, Class is_in) {
  while (at < text.size() && is_in(text[at])) ++at;
  return at;
}

// Where the text of a line begins behind what launchers put in front: "[rank0]:", "[default1]:[rank1]:".
inline std::size_t PrefixEnd(std::string_view line) {
  constexpr std::size_t kLongest = 24;
  std::size_t at = 0;
  while (at < line.size() && line[at] == '[') {
    const std::size_t end = line.substr(at, kLongest).find("]:");
    if (end == std::string_view::npos) break;
    at += end + 2;
  }
  return at;
}

inline bool IsIndented(std::string_view line, std::size_t spaces) {
  line.remove_prefix(PrefixEnd(line));
  return RunEnd(line, 0, [](char c) { return c == ' '; }) >= spaces;
}

// Hashes and ids that PyTorch writes: 8 and more hex digits, or 50 and more characters of base 32.
inline bool IsHash(std::string_view text) {
  const bool has_digit = std::any_of(text.begin(), text.end(), IsDigit);
  if (!has_digit) return false;
  if (text.size() >= 8 && text.size() <= 64 && std::all_of(text.begin(), text.end(), IsLowerHex))
    return true;
  return text.size() >= 50 && text.size() <= 54 && std::all_of(text.begin(), text.end(), IsBase32);
}

// Whether a path begins in the package torch: guards write paths without their beginning.
inline bool IsPathOfTorch(std::string_view path) {
  for (const std::string_view begin :
       {"torch/", "triton/", "_dynamo/", "_inductor/", "_functorch/", "_library/", "_subclasses/",
        "nn/modules/", "utils/_", "distributed/_", "dist-packages/", "site-packages/"})
    if (path.starts_with(begin)) return true;
  return path.find("/nn/modules/") != std::string_view::npos ||
         path.find("/_dynamo/") != std::string_view::npos ||
         path.find("torch/_") != std::string_view::npos;
}

// Whether a path is a file of Python or one of its packages, or a name of no file: "<frozen runpy>".
inline bool IsPublicPath(std::string_view path) {
  for (const std::string_view part :
       {"site-packages/", "dist-packages/", "/lib/python3", "<", "torchinductor_"})
    if (path.find(part) != std::string_view::npos) return true;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  return IsPathOfTorch(path) || IsHash(file.substr(0, file.find('.')));
}

}  // namespace tlparse::redact
