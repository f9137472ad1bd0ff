// One piece of the viewer's data: named tables of one JSON document. The page loads a piece when it
// needs it, from a file (data/<name>.js) or over HTTP (/api/chunk/<name>): the document is the
// same. Its shape is schemas/json/viewer/*.schema.json.
//
//   {"strings": ["a", …], "tables": {"compile": {"rows": 2, "numbers": {"id": [1, 2]}, "texts":
//   {"label": [0, null]}}}}
//
// Columns, not rows: names are written once, and what repeats is a small number. Texts are indexes
// into "strings".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// A table of a chunk as SQL: SELECT <numbers>, <texts> <from>. Both lists are SQL expressions with
// AS names; either may be empty.
struct ViewerTable {
  const char* name;
  const char* numbers;
  const char* texts;
  const char* from;
};

// A named parameter of the SQL, with its colon: {":first", 7}.
using ViewerParameters = std::vector<std::pair<const char*, std::int64_t>>;

class ChunkWriter {
 public:
  ChunkWriter() = default;

  // Runs the query and adds its rows as table `table.name`. Parameters that the SQL does not use
  // are ignored.
  Result<void> AddTable(Database& database, const ViewerTable& table,
                        const ViewerParameters& parameters);

  // By hand: all columns first, then cell by cell in that order, row by row.
  void BeginTable(std::string_view name, const std::vector<std::string_view>& numbers,
                  const std::vector<std::string_view>& texts);
  void AddNumber(std::optional<std::int64_t> value);
  void AddReal(double value);  // NaN and infinities become null: JSON has none
  void AddText(std::optional<std::string_view> text);

  // Bytes so far, about.
  std::size_t size_bytes() const { return size_bytes_; }

  // The document. The writer is empty afterwards.
  std::string Finish();

 private:
  struct Column {
    std::string name;
    bool is_text = false;
    std::string cells;  // without brackets
  };
  struct Table {
    std::string name;
    std::vector<Column> columns;
    std::size_t next_cell = 0;
  };
  std::string& NextCell();

  std::vector<Table> tables_;
  std::vector<std::string> strings_;
  std::unordered_map<std::string, std::size_t> string_ids_;
  std::size_t size_bytes_ = 0;
};

}  // namespace tlparse
