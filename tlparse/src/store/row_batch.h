// Rows to be inserted into SQLite: collected by table while a window of the log is typed, inserted
// by the writing step with one statement per table.
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

// A distinct number for every type of row that the program uses.
std::uint16_t NextRowTypeNumber();
template <typename Row>
inline const std::uint16_t kRowTypeNumber = NextRowTypeNumber();

// The tables of a load, in a fixed order. One per load, built before the threads start, then
// read-only.
class TableSet {
 public:
  // Rows of this type will be added. Calling it again gives the same id.
  template <typename Row>
  TableId Use() {
    return Use(kRowTypeNumber<Row>, Row::kTable, Row::kColumns);
  }
  struct Table {
    std::string_view name;
    std::span<const std::string_view> columns;  // that rows give values for, in this order
  };
  const std::vector<Table>& tables() const { return tables_; }
  // kNoTable: the type was not named by Use.
  template <typename Row>
  TableId Find() const {
    return kRowTypeNumber<Row> < by_row_type_.size() ? by_row_type_[kRowTypeNumber<Row>] : kNoTable;
  }
  static constexpr TableId kNoTable = 0xFFFF;

 private:
  TableId Use(std::uint16_t row_type, std::string_view table,
              std::span<const std::string_view> columns);

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

  // The table that rows of this type go to; TableSet::kNoTable: none.
  template <typename Row>
  TableId TableOf() const {
    return tables_->Find<Row>();
  }
  const std::vector<Cell>& cells(TableId table) const { return rows_[table]; }
  // Whether the batch is so large that the next rows should go into another one.
  bool IsFull() const { return row_count_ >= kMostRows; }
  Arena& arena() { return arena_; }
  std::size_t allocated_bytes() const {
    std::size_t bytes = arena_.allocated_bytes();
    for (const std::vector<Cell>& cells : rows_) bytes += cells.capacity() * sizeof(Cell);
    return bytes;
  }
  // Keeps the memory of an ordinary batch.
  void Clear() {
    for (std::vector<Cell>& cells : rows_) {
      cells.clear();
      if (cells.capacity() > kMostKeptCells) cells.shrink_to_fit();
    }
    arena_.Clear();
    row_count_ = 0;
    unknown_table_ = {};
  }

 private:
  static constexpr std::size_t kMostRows = 8192;
  static constexpr std::size_t kMostKeptCells = kMostRows * 20;

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
