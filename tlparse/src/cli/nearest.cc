#include "cli/nearest.h"

#include <algorithm>
#include <vector>

namespace tlparse {
namespace {

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string Nearest(std::string_view mistyped, std::span<const std::string> names) {
  constexpr std::size_t kLongest = 64;  // no name is longer
  if (mistyped.size() > kLongest) return {};
  std::string nearest;
  std::size_t least = mistyped.size() / 3 + 1;
  for (const std::string& name : names) {
    const std::size_t distance = EditDistance(mistyped, name);
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

}  // namespace tlparse
