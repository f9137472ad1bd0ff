// Writes an answer with its texts and lists cut, and counts what it cuts.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "cli/mcp/fit.h"

namespace tlparse {

// How much of texts and lists is shown, and to which depth. `nested`: of items that hold lists.
struct FitMeasure {
  std::size_t text, items, nested, depth;
};

struct LeftOut {
  std::map<std::string, std::pair<std::size_t, std::size_t>> lists;  // shown, of
  std::size_t texts = 0;
};

class FitWriter {
 public:
  FitWriter(const FitOptions& options, const FitMeasure& measure, JsonWriter& json,
            LeftOut& left_out)
      : options_(options), measure_(measure), json_(json), left_out_(left_out) {}

  // The members of a document but its rows.
  void WriteHead(simdjson::dom::object document);
  void WriteRow(simdjson::dom::element row);

 private:
  void WriteMember(std::string_view key, simdjson::dom::element value, const std::string& path,
                   std::size_t depth);
  void Write(simdjson::dom::element value, const std::string& path, std::size_t depth);
  void WriteText(std::string_view text, const std::string& path, std::size_t depth);
  std::size_t MostItems(simdjson::dom::array list) const;
  void WriteList(simdjson::dom::array list, const std::string& path, std::size_t depth);

  const FitOptions& options_;
  const FitMeasure& measure_;
  JsonWriter& json_;
  LeftOut& left_out_;
};

// The items of a list in the order in which they are shown: those that are alike last.
std::vector<simdjson::dom::element> ItemsInOrder(simdjson::dom::array list);

// The items of all lists of a name as LeftOut has it; "a[].b" and "a.b" are those of all a, "a[2].b"
// those of the third. None: there is nothing of that name.
std::optional<std::vector<simdjson::dom::element>> ItemsOfList(simdjson::dom::element document,
                                                               std::string_view name);

}  // namespace tlparse
