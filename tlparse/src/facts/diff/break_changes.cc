#include "facts/diff/break_changes.h"

#include <fmt/format.h>

#include <algorithm>

namespace tlparse {

void CompareBreaks(const std::vector<FactBreak>& a, const std::vector<FactBreak>& b,
                   CompileChange& change) {
  std::vector<FactBreak> gone = a;
  const auto text = [](const FactBreak& one) {
    return one.place.empty() ? one.cause : fmt::format("{} at {}", one.cause, one.place);
  };
  for (const FactBreak& one : b) {
    auto same = std::find_if(gone.begin(), gone.end(), [&](const FactBreak& other) {
      return other.place == one.place && other.cause == one.cause;
    });
    if (same == gone.end() && !one.place.empty())
      same = std::find_if(gone.begin(), gone.end(),
                          [&](const FactBreak& other) { return other.place == one.place; });
    if (same == gone.end()) {
      change.new_graph_breaks.push_back(text(one));
      continue;
    }
    if (same->cause != one.cause)
      change.changed_graph_breaks.push_back(
          fmt::format("{}: {} → {}", one.place, same->cause, one.cause));
    gone.erase(same);
  }
  for (const FactBreak& one : gone) change.vanished_graph_breaks.push_back(text(one));
}

}  // namespace tlparse
