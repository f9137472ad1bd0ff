// One piece of the viewer's data: named tables of one JSON document. The page loads a piece when it
// needs it, from a file (data/<name>.js) or over HTTP (/api/chunk/<name>): the document is the
// same. Its shape is schemas/json/viewer/*.schema.json.
//
//   {"strings": ["a", …], "tables": {"compile": {
//     "rows": 2, "numbers": {"id": [1, 2]}, "texts": {"label": [0, null]}}}}
//
// Columns, not rows: names are written once, and a repeated text is a small number, its index in
// "strings".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/hash128.h"

namespace tlparse {

// A named parameter of the SQL, with its colon: {":first", 7}.
using ViewerParameters = std::vector<std::pair<const char*, std::int64_t>>;

// Microseconds from `origin_us` to a moment in nanoseconds.
inline double OffsetUs(std::int64_t ns, std::int64_t origin_us) {
  return static_cast<double>(ns / 1000 - origin_us) + static_cast<double>(ns % 1000) / 1e3;
}

// NULL for an empty text.
inline std::optional<std::string_view> OptionalText(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

class ChunkWriter {
 public:
  ChunkWriter() = default;

  // Runs the query and adds its rows as a table. Columns before the one named | are numbers, those
  // after it texts; a text column named "x@text" becomes the column x and holds ids of `text_row`.
  // Parameters that the SQL does not use are ignored.
  Result<void> AddTable(Database& database, std::string_view name, const std::string& sql,
                        const ViewerParameters& parameters);
  // The frames of the stacks that columns named stack_id and user_stack_id of tables so far name,
  // outer ones included: id, parent_id, line, file, function, code, by id.
  Result<void> AddFrames(Database& database, std::string_view name);

  // Without a query: declare all columns first, then add cell by cell in that order, row by row.
  void BeginTable(std::string_view name, const std::vector<std::string_view>& numbers,
                  const std::vector<std::string_view>& texts);
  void AddNumber(std::optional<std::int64_t> value);
  void AddReal(double value);  // NaN and infinities become null: JSON has none
  void AddText(std::optional<std::string_view> text);
  // One of text_row, by its id.
  Result<void> AddTextOfId(Database& database, std::int64_t text_id);
  // The same for a text that is unlikely to repeat: earlier texts are not searched for it.
  void AddNewText(std::string_view text);

  // The document. The writer is empty afterwards.
  std::string Finish();

 private:
  static constexpr const char* kStart = "{\"strings\":[";
  struct Column {
    std::string name;
    bool is_text = false;
    std::string cells;  // without brackets
  };
  struct Table {
    std::string name;
    std::vector<Column> columns;
    std::size_t next_column = 0;
    std::size_t rows = 0;
  };
  std::string& NextCell();
  std::size_t NewStringId(std::string_view text);
  std::size_t StringId(std::string_view text);

  std::vector<Table> tables_;
  std::string strings_ = kStart;  // the document so far
  std::size_t string_count_ = 0;
  std::unordered_map<Hash128, std::size_t, Hash128Hasher> string_ids_;
  std::unordered_map<std::int64_t, std::size_t> string_ids_of_texts_;  // by id in `text_row`
  std::unordered_set<std::int64_t> stack_ids_;
};

}  // namespace tlparse
