// Parts of PyTorch's messages.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/ascii.h"

namespace tlparse {

// The text between `begin` and `end`; empty if either is missing.
inline std::string_view Between(std::string_view text, std::string_view begin,
                                std::string_view end) {
  const std::size_t at = text.find(begin);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + begin.size());
  const std::size_t stop = text.find(end);
  return stop == std::string_view::npos ? std::string_view() : text.substr(0, stop);
}

// The digits that `text` begins with; they are removed from it.
inline std::optional<std::int64_t> TakeNumber(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// Calls take(line) for each trimmed line until it returns false.
template <typename Take>
void ForEachLine(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (!take(Trimmed(text.substr(0, end)))) return;
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace tlparse
