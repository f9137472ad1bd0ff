// Rows on their way into SQLite: collected by table while a window of the log is understood,
// inserted by the writing stage with one statement per table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/arena.h"
#include "store/row.h"

namespace tlparse {

class RowBatch;

// A table that rows are added to; made once by TableSet::Use.
using TableId = std::uint16_t;

// A number of its own for every type of row that the program uses.
std::uint16_t NextRowTypeNumber();
template <typename Row>
inline const std::uint16_t kRowTypeNumber = NextRowTypeNumber();

// The tables of a load, in a fixed order. One per load, built before the threads start, then
// read-only.
class TableSet {
 public:
  // Rows for `table` have `columns` values, in the order of CREATE TABLE. Calling it again gives
  // the same id.
  TableId Use(std::string_view table, std::size_t columns);
  // Rows of this type will be added.
  template <typename Row>
  TableId Use() {
    const TableId table = Use(Row::kTable, Row::kColumns.size());
    tables_[table].column_names = Row::kColumns;
    if (by_row_type_.size() <= kRowTypeNumber<Row>)
      by_row_type_.resize(kRowTypeNumber<Row> + 1u, kNoTable);
    by_row_type_[kRowTypeNumber<Row>] = table;
    return table;
  }
  struct Table {
    std::string name;
    std::size_t columns;
    std::span<const std::string_view> column_names = {};
  };
  const std::vector<Table>& tables() const { return tables_; }
  // kNoTable: the type was not named by Use.
  template <typename Row>
  TableId Find() const {
    return kRowTypeNumber<Row> < by_row_type_.size() ? by_row_type_[kRowTypeNumber<Row>] : kNoTable;
  }
  static constexpr TableId kNoTable = 0xFFFF;

 private:
  std::vector<Table> tables_;
  std::vector<TableId> by_row_type_;
};

// The rows of one window, by table, in the order added.
class RowBatch {
 public:
  // `tables` must outlive the batch.
  explicit RowBatch(const TableSet& tables) : tables_(&tables), rows_(tables.tables().size()) {}

  // Adds a row to the table that its type belongs to. Text is copied into the arena unless it is a
  // StaticText. A type that TableSet::Use has not named is an error of the program, which the
  // writer reports (unknown_table).
  template <typename Row>
  requires requires { Row::kTable; }
  void Add(const Row& row) {
    const TableId table = tables_->Find<Row>();
    if (table >= rows_.size()) [[unlikely]] {
      unknown_table_ = Row::kTable;
      return;
    }
    std::vector<Cell>& cells = rows_[table];
    const std::size_t count = cells.size();
    cells.resize(count + Row::kColumns.size());
    Cell* cell = cells.data() + count;
    row.ForEachValue([&](const auto& value) { SetCell(*cell++, value); });
    ++row_count_;
  }
  // A table that rows were added to and that TableSet::Use had not named; empty: none.
  std::string_view unknown_table() const { return unknown_table_; }

  // Adds a row. Values: integers, bool, double, string_view (copied into the arena), StaticText,
  // StaticAny, nullptr (NULL), and std::optional of those. The number of values must be the table's
  // columns (checked by the writer).
  template <typename... Values>
  void Add(TableId table, const Values&... values) {
    std::vector<Cell>& cells = rows_[table];
    (cells.push_back(MakeCell(values)), ...);
    ++row_count_;
  }

  template <typename Row>
  TableId TableOf() const {
    return tables_->Find<Row>();
  }
  const std::vector<Cell>& cells(TableId table) const { return rows_[table]; }
  // Whether so many rows were added that the next ones had better go into another batch.
  bool IsFull() const { return row_count_ >= kMostRows; }
  Arena& arena() { return arena_; }
  void Clear() {
    for (std::vector<Cell>& cells : rows_) cells.clear();
    arena_.Clear();
    row_count_ = 0;
    unknown_table_ = {};
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
  template <typename T>
  void SetCell(Cell& cell, const NotNull<T>& value) {
    SetCell(cell, value.value());
  }
  template <typename T>
  void SetCell(Cell& cell, const std::optional<T>& value) {
    if (value) {
      SetCell(cell, *value);
    } else {
      cell.type = Cell::Type::kNull;
    }
  }
  template <typename T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) void SetCell(Cell& cell, T value) {
    cell.type = Cell::Type::kInt;
    cell.integer = static_cast<std::int64_t>(value);
  }
  void SetCell(Cell& cell, double value) {
    cell.type = Cell::Type::kReal;
    cell.real = value;
  }
  void SetCell(Cell& cell, const RowText& value) {
    SetBytes(cell, Cell::Type::kText,
             value.is_static() ? value.bytes() : arena_.Copy(value.bytes()));
  }
  void SetCell(Cell& cell, const StaticAny& value) {
    SetBytes(cell, value.is_text ? Cell::Type::kText : Cell::Type::kBlob, value.bytes);
  }
  static void SetBytes(Cell& cell, Cell::Type type, std::string_view bytes) {
    cell.type = type;
    cell.bytes = bytes.data() == nullptr ? "" : bytes.data();
    cell.size = static_cast<std::uint32_t>(bytes.size());
  }

  const TableSet* tables_;
  std::string_view unknown_table_;
  std::vector<std::vector<Cell>> rows_;
  Arena arena_;
  std::size_t row_count_ = 0;
};

}  // namespace tlparse
