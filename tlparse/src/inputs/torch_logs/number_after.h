// Numbers in lines that processes print.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tlparse {

// The number behind the first `key`; nothing: there is none. One at the end of the text may be cut: it counts only where
// it `may_end` the text.
inline std::optional<std::int64_t> NumberAfter(std::string_view text, std::string_view key,
                                               bool may_end = false) {
  const std::size_t at = text.find(key);
  if (at == text.npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  if (!may_end && end == text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace tlparse
