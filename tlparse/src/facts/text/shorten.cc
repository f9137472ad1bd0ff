#include "facts/text/shorten.h"

#include <algorithm>

#include "base/ascii.h"

namespace tlparse {

std::string DigitsAsZero(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto kept_end =
        std::find_if(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), IsDigit);
    const auto end = static_cast<std::size_t>(kept_end - text.begin());
    result += text.substr(at, end - at);
    at = end;
    if (at < text.size()) result += '0';
    while (at < text.size() && IsDigit(text[at])) ++at;
  }
  return result;
}

std::string Shorten(std::string_view value, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i] == '\n' || value[i] == '\t' || value[i] == '\r' ? ' ' : value[i];
    if (c == ' ' && (text.empty() || text.back() == ' ')) continue;
    if (text.size() >= size && (static_cast<unsigned char>(c) & 0xC0U) != 0x80U) return text + "…";
    text += c;
  }
  return text;
}

}  // namespace tlparse
