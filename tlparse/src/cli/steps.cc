#include "cli/steps.h"

#include <charconv>
#include <cstdio>
#include <string_view>

#include "cli/terminal.h"

namespace tlparse {

bool ParseSteps(const std::string& text, std::optional<std::int64_t>& first,
                std::optional<std::int64_t>& last) {
  const auto number = [](std::string_view digits, std::optional<std::int64_t>& value) {
    std::int64_t parsed = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() ||
        parsed < 0)
      return false;
    value = parsed;
    return true;
  };
  const std::size_t dash = text.find('-');
  const std::string_view from = std::string_view(text).substr(0, dash);
  const std::string_view to = dash == text.npos ? from : std::string_view(text).substr(dash + 1);
  if (number(from, first) && number(to, last) && *first <= *last) return true;
  std::fprintf(stderr, "tlparse: --steps takes a step or a range like 3-5, not '%s'\n",
               Printable(text).c_str());
  return false;
}

}  // namespace tlparse
