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

// "1 lookup", "3 lookups", "2 processes", "4 entries".
template <typename Number>
std::string Count(Number count, std::string_view noun) {
  if (count == 1) return fmt::format("1 {}", noun);
  const bool is_y = noun.ends_with('y') && !noun.ends_with("ey") && !noun.ends_with("ay");
  return fmt::format("{} {}{}", count, is_y ? noun.substr(0, noun.size() - 1) : noun,
                     is_y                  ? "ies"
                     : noun.ends_with('s') ? "es"
                                           : "s");
}

// "1 event was", "2 events were".
template <typename Number>
std::string CountWere(Number count, std::string_view noun) {
  return Count(count, noun) + (count == 1 ? " was" : " were");
}

}  // namespace tlparse
