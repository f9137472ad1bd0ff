#include "facts/collectives/splits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace tlparse {
namespace {

// "[3, 2]" at the beginning of `text`, which is taken off.
std::optional<std::vector<std::int64_t>> TakeList(std::string_view& text) {
  if (!text.starts_with('[')) return std::nullopt;
  const std::size_t end = text.find(']');
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view list = text.substr(1, end - 1);
  text.remove_prefix(end + 1);
  std::vector<std::int64_t> sizes;
  while (!list.empty()) {
    std::int64_t size = 0;
    const auto [rest, error] = std::from_chars(list.data(), list.data() + list.size(), size);
    if (error != std::errc()) return std::nullopt;
    list.remove_prefix(static_cast<std::size_t>(rest - list.data()));
    if (!list.empty() && list.front() != ',') return std::nullopt;
    list.remove_prefix(std::min(list.find_first_not_of(", "), list.size()));
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

std::optional<Splits> SplitsOf(std::string_view arguments) {
  std::optional<std::vector<std::int64_t>> from = TakeList(arguments);
  if (!from || !arguments.starts_with(", ")) return std::nullopt;
  arguments.remove_prefix(2);
  std::optional<std::vector<std::int64_t>> to = TakeList(arguments);
  if (!to || !arguments.empty() || from->size() != to->size() || from->empty()) return std::nullopt;
  return Splits{std::move(*from), std::move(*to)};
}

std::string NoteOfSplits(SplitsByRank ranks, const std::string& graph) {
  std::string note = fmt::format("other splits of all_to_all_single in {}", graph);
  std::sort(ranks.begin(), ranks.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [rank, splits] : ranks) {
    if (!rank || !splits || splits->from.size() != ranks.size())
      return note + "; whether they fit those of the other ranks is not known";
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (std::size_t j = 0; j < ranks.size(); ++j) {
      if (ranks[i].second->from[j] != ranks[j].second->to[i]) return {};
    }
  }
  return note + ", which fit those of the other ranks";
}

}  // namespace tlparse
