// Endings of words that follow a count.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace tlparse {

// Of a noun: "1 lookup", "2 lookups".
template <typename Number>
constexpr std::string_view PluralS(Number count) {
  return count == 1 ? "" : "s";
}

// Of its verb: "1 rank waits", "2 ranks wait".
template <typename Number>
constexpr std::string_view VerbS(Number count) {
  return count == 1 ? "s" : "";
}

// "1 lookup", "3 lookups", "2 processes".
inline std::string Count(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with('s') ? "es" : "s");
}

}  // namespace tlparse
