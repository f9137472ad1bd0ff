#include "base/json_string.h"

#include <algorithm>
#include <bit>

#include "base/ascii.h"
#include "base/plain_bytes.h"

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
    if (HexDigit(c) < 0) return std::nullopt;
    unit = unit << 4 | static_cast<std::uint32_t>(HexDigit(c));
  }
  return unit;
}

std::optional<std::string> UnescapeJson(std::string_view inside) {
  std::string text;
  while (true) {
    const std::size_t plain = std::min(inside.find('\\'), inside.size());
    text.append(inside.substr(0, plain));
    inside.remove_prefix(plain);
    if (inside.empty()) return text;
    constexpr std::string_view kKinds = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    const char kind = inside.size() > 1 ? inside[1] : '\0';
    inside.remove_prefix(std::min<std::size_t>(2, inside.size()));
    if (const std::size_t position = kKinds.find(kind); position != kKinds.npos) {
      text.push_back(kMeanings[position]);
      continue;
    }
    std::optional<std::uint32_t> code_point = kind == 'u' ? HexUnit(inside) : std::nullopt;
    if (!code_point) return std::nullopt;
    inside.remove_prefix(4);
    if (IsHighSurrogate(*code_point) && inside.starts_with("\\u")) {
      const std::optional<std::uint32_t> low = HexUnit(inside.substr(2));
      if (!low) return std::nullopt;
      if (IsLowSurrogate(*low)) {
        code_point = FromSurrogates(*code_point, *low);
        inside.remove_prefix(6);
      }
    }
    const bool is_lone = IsHighSurrogate(*code_point) || IsLowSurrogate(*code_point);
    AppendUtf8(is_lone ? 0xFFFD : *code_point, text);
  }
}

const char* EndOfJsonString(const char* at, const char* end) {
  while (at != end) {
    if (end - at >= static_cast<std::ptrdiff_t>(kBlockBytes)) {
      const unsigned special = SpecialBytes<0, '"', '\\'>(at);
      at += special == 0 ? static_cast<int>(kBlockBytes) : std::countr_zero(special);
      if (special == 0) continue;
    }
    const char c = *at++;
    if (c == '"') return at;
    if (c == '\\' && at != end) ++at;
  }
  return nullptr;
}

}  // namespace tlparse
