#include "base/json_string.h"

#include <algorithm>

#include "base/ascii.h"

namespace tlparse {

void AppendUtf8(std::uint32_t code_point, std::string& text) {
  const auto add = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    add(code_point);
  } else if (code_point < 0x800) {
    add(0xc0 | code_point >> 6);
    add(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    add(0xe0 | code_point >> 12);
    add(0x80 | (code_point >> 6 & 0x3f));
    add(0x80 | (code_point & 0x3f));
  } else {
    add(0xf0 | code_point >> 18);
    add(0x80 | (code_point >> 12 & 0x3f));
    add(0x80 | (code_point >> 6 & 0x3f));
    add(0x80 | (code_point & 0x3f));
  }
}

std::optional<std::uint32_t> HexUnit(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  std::uint32_t unit = 0;
  for (const char c : text.substr(0, 4)) {
    const char lower = static_cast<char>(c | 0x20);
    if (IsDigit(c)) {
      unit = unit << 4 | static_cast<std::uint32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      unit = unit << 4 | static_cast<std::uint32_t>(lower - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return unit;
}

std::string UnescapeJson(std::string_view inside) {
  std::string text;
  while (!inside.empty()) {
    const std::size_t plain = std::min(inside.find('\\'), inside.size());
    text.append(inside.substr(0, plain));
    inside.remove_prefix(plain);
    if (inside.empty()) break;
    const char kind = inside[1];
    inside.remove_prefix(2);
    if (kind != 'u') {
      constexpr std::string_view kKinds = "bfnrt", kMeanings = "\b\f\n\r\t";
      const std::size_t position = kKinds.find(kind);
      text.push_back(position == kKinds.npos ? kind : kMeanings[position]);
      continue;
    }
    std::uint32_t code_point = *HexUnit(inside);
    inside.remove_prefix(4);
    if (IsHighSurrogate(code_point)) {  // its partner follows
      code_point = FromSurrogates(code_point, *HexUnit(inside.substr(2)));
      inside.remove_prefix(6);
    }
    AppendUtf8(code_point, text);
  }
  return text;
}

}  // namespace tlparse
