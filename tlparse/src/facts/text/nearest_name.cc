#include "facts/text/nearest_name.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "queries/facts/text/nearest_name.h"

namespace tlparse {
namespace {

// The number of insertions, removals and changes between two names; beyond `most` any larger one.
std::size_t EditDistance(std::string_view a, std::string_view b, std::size_t most) {
  if (a.size() > b.size() + most || b.size() > a.size() + most) return most + 1;
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// "compile_history", "compile_history, rank_summary and 3 more"
std::string OwnersOf(Database& database, std::string_view column) {
  constexpr std::size_t kMost = 3;
  std::string owners;
  std::size_t count = 0;
  auto rows = Query<OwnerOfColumn>(database, {.name = column});
  while (rows.Next()) {
    if (++count <= kMost) owners += (owners.empty() ? "" : ", ") + std::string(rows.row().name);
  }
  if (count > kMost) owners += " and " + std::to_string(count - kMost) + " more";
  return owners;
}

}  // namespace

std::string WithNearestName(Database& database, std::string message) {
  constexpr std::string_view kColumn = "no such column: ", kTable = "no such table: ";
  const bool is_column = message.find(kColumn) != std::string::npos;
  const std::string_view mark = is_column ? kColumn : kTable;
  const std::size_t at = message.find(mark);
  if (at == std::string::npos) return message;
  std::string_view name = std::string_view(message).substr(at + mark.size());
  name =
      name.substr(0, static_cast<std::size_t>(
                         std::find_if_not(name.begin(), name.end(),
                                          [](char c) { return c == '.' || IsNameCharacter(c); }) -
                         name.begin()));
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos)
    name.remove_prefix(dot + 1);
  std::size_t least = std::max<std::size_t>(2, name.size() / 3);
  std::string nearest;
  auto rows = Query<QueryableName>(database, {.is_column = is_column});
  while (rows.Next()) {
    const std::string_view one = rows.row().name;
    const std::size_t distance = EditDistance(name, one, least);
    if (distance < least + (nearest.empty() ? 1 : 0)) {
      least = distance;
      nearest = one;
    }
  }
  if (nearest.empty()) return message;
  // A column that is there, of something else than the query names.
  if (nearest == name)
    return message + "; " + nearest + " is a column of " + OwnersOf(database, nearest);
  return message + "; did you mean " + nearest + "?";
}

}  // namespace tlparse
