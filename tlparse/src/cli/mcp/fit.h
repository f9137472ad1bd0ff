// Makes an answer fit a number of bytes: what it says of most rows stays, in the order of the answer;
// what is left out is counted.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tlparse {

struct FitOptions {
  std::string_view rows;  // member of the document whose items are paged; empty: there is none
  std::span<const std::string_view> omitted;  // members that are left out everywhere
  // Member that says how many rows there are, where the document has those from the cursor on.
  std::string_view row_count = {};
  // The list whose items are paged instead, as "where" names it: "groups[].lines", or "groups[2].lines".
  std::string_view list = {};
  std::size_t cursor = 0;     // the first row
  std::size_t limit = 0;      // how many rows; 0: as many as fit
  std::size_t budget = 2000;  // bytes
};

// No more rows fit into a budget.
constexpr std::size_t MostRows(std::size_t budget) { return budget / 16 + 2; }

// {"answer": the document, "left_out": [{"where", "shown", "of"}], "texts_cut", "next_cursor",
// "more"}; members that are null, "" or [] are left out, and control characters of its texts are
// made visible. Of a list, the items that are marked `is_alike` come last. A document that cannot be
// made so small is larger than the budget. kUsage: there is no such list.
Result<std::string> Fit(simdjson::dom::element document, const FitOptions& options);

}  // namespace tlparse
