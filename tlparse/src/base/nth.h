// Numbers that say which one of an order.
#pragma once

#include <fmt/format.h>

#include <string>

namespace tlparse {

// "1st", "2nd", "11th".
template <typename Number>
std::string Nth(Number number) {
  const auto last = number % 10;
  const bool is_teen = number % 100 / 10 == 1;
  return fmt::format("{}{}", number,
                     is_teen     ? "th"
                     : last == 1 ? "st"
                     : last == 2 ? "nd"
                     : last == 3 ? "rd"
                                 : "th");
}

}  // namespace tlparse
