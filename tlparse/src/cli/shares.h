// What the answers that divide an amount (time, bytes) into shares print alike: cost, memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/terminal.h"

namespace tlparse {

// "12.5 %"
std::string Percent(double share);
// "3 ms (12.5 %)"; without the share if there is nothing to share.
std::string PartText(std::string amount, double part, double all);
// One line; on a terminal as many of its width as it takes.
void PrintLine(std::string_view text, int indent);
// "and 12 more (--top)", if there are more than `top`.
void PrintMore(std::size_t count, std::size_t top);

// The columns with which tables of shares begin; `amount`: what is shared.
std::vector<Table::Column> ShareHeadings(std::string_view amount);

// Adds the first `top` rows to the table.
template <typename Row, typename CellsOf>
void AddShares(Table& table, const std::vector<Row>& rows, std::size_t top, CellsOf cells_of) {
  for (std::size_t i = 0; i < std::min(top, rows.size()); ++i) table.Add(cells_of(rows[i]));
}

// Values of a flag by their names: of a table std::pair<std::string_view, Value>.
template <typename Value, std::size_t kSize>
std::vector<std::string> NamesOf(const std::pair<std::string_view, Value> (&table)[kSize]) {
  std::vector<std::string> names;
  for (const auto& [name, value] : table) names.emplace_back(name);
  return names;
}
// Of a name that the table holds.
template <typename Value, std::size_t kSize>
Value ValueOf(const std::pair<std::string_view, Value> (&table)[kSize], std::string_view wanted) {
  for (const auto& [name, value] : table) {
    if (name == wanted) return value;
  }
  return table[0].second;
}

}  // namespace tlparse
