// Rows on their way into SQLite: collected by table while a window of the log is understood,
// inserted by the writing stage with one statement per table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/arena.h"

namespace tlparse {

// A value of a row. Text and blobs are not owned.
struct Cell {
  enum class Type : std::uint8_t { kNull, kInt, kReal, kText, kBlob };
  union {
    std::int64_t integer;
    double real;
    const char* bytes;
  };
  std::uint32_t size;
  Type type;
};

// Text that outlives the batch's arena users without being copied: the window's or arena's own
// bytes, or a literal.
struct StaticText {
  std::string_view text;
};
// TEXT if valid UTF-8 without NUL, else BLOB; not copied.
struct StaticAny {
  std::string_view bytes;
  bool is_text;
};

class RowBatch;

// A table that rows are added to; made once by TableSet::Use.
using TableId = std::uint16_t;

// The tables of a load, in a fixed order. One per load, built before the threads start, then
// read-only.
class TableSet {
 public:
  // Rows for `table` have `columns` values, in the order of CREATE TABLE. Calling it again gives
  // the same id.
  TableId Use(std::string_view table, std::size_t columns);
  struct Table {
    std::string name;
    std::size_t columns;
  };
  const std::vector<Table>& tables() const { return tables_; }

 private:
  std::vector<Table> tables_;
};

// The rows of one window, by table, in the order added.
class RowBatch {
 public:
  explicit RowBatch(const TableSet& tables) : rows_(tables.tables().size()) {}

  // Adds a row. Values: integers, bool, double, string_view (copied into the arena), StaticText,
  // StaticAny, nullptr (NULL), and std::optional of those. The number of values must be the table's
  // columns (checked by the writer).
  template <typename... Values>
  void Add(TableId table, const Values&... values) {
    std::vector<Cell>& cells = rows_[table];
    (cells.push_back(MakeCell(values)), ...);
    ++row_count_;
  }

  const std::vector<Cell>& cells(TableId table) const { return rows_[table]; }
  // Whether so many rows were added that the next ones had better go into another batch.
  bool IsFull() const { return row_count_ >= kMostRows; }
  Arena& arena() { return arena_; }
  void Clear() {
    for (std::vector<Cell>& cells : rows_) cells.clear();
    arena_.Clear();
    row_count_ = 0;
  }

 private:
  static constexpr std::size_t kMostRows = 8192;

  template <typename T>
  Cell MakeCell(const T& value) {
    Cell cell{};
    if constexpr (std::is_same_v<T, std::nullptr_t>) {
      cell.type = Cell::Type::kNull;
    } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      cell.type = Cell::Type::kInt;
      cell.integer = static_cast<std::int64_t>(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      cell.type = Cell::Type::kReal;
      cell.real = value;
    } else if constexpr (std::is_same_v<T, StaticText>) {
      SetBytes(cell, Cell::Type::kText, value.text);
    } else if constexpr (std::is_same_v<T, StaticAny>) {
      SetBytes(cell, value.is_text ? Cell::Type::kText : Cell::Type::kBlob, value.bytes);
    } else if constexpr (std::is_convertible_v<T, std::string_view>) {
      SetBytes(cell, Cell::Type::kText, arena_.Copy(value));
    } else {  // std::optional
      if (value) return MakeCell(*value);
      cell.type = Cell::Type::kNull;
    }
    return cell;
  }
  static void SetBytes(Cell& cell, Cell::Type type, std::string_view bytes) {
    cell.type = type;
    cell.bytes = bytes.data() == nullptr ? "" : bytes.data();
    cell.size = static_cast<std::uint32_t>(bytes.size());
  }

  std::vector<std::vector<Cell>> rows_;
  Arena arena_;
  std::size_t row_count_ = 0;
};

}  // namespace tlparse
