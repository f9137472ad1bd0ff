#include "report/viewer_chunk.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <iterator>

#include "base/json_writer.h"

namespace tlparse {
namespace {

void AppendInt(std::int64_t value, std::string& out) {
  const fmt::format_int digits(value);
  out.append(digits.data(), digits.size());
}

}  // namespace

Result<void> ChunkWriter::AddTable(Database& database, std::string_view name,
                                   const std::string& sql, const ViewerParameters& parameters) {
  ASSIGN_OR_RETURN(Statement* const kept, database.PrepareKept(sql));
  Statement& statement = *kept;
  for (const auto& [parameter, value] : parameters) {
    if (const int index = sqlite3_bind_parameter_index(statement.handle(), parameter); index != 0)
      statement.Bind(index, value);
  }
  const std::string stacks = StackList();
  if (const int index = sqlite3_bind_parameter_index(statement.handle(), ":stacks"); index != 0)
    statement.Bind(index, stacks);
  enum class Cell : std::uint8_t { kNumber, kStack, kMarker, kText, kTextId };
  std::vector<Cell> cells;
  std::vector<std::string_view> numbers;
  std::vector<std::string_view> texts;
  bool is_text = false;
  for (int i = 0; i < statement.column_count(); ++i) {
    std::string_view column = statement.ColumnName(i);
    if (column == "|") {
      cells.push_back(Cell::kMarker);
      is_text = true;
    } else if (!is_text) {
      cells.push_back(column == "stack_id" || column == "user_stack_id" ? Cell::kStack
                                                                        : Cell::kNumber);
      numbers.push_back(column);
    } else {
      constexpr std::string_view kIdMark = "@text";
      const bool is_id = column.ends_with(kIdMark);
      if (is_id) column.remove_suffix(kIdMark.size());
      cells.push_back(is_id ? Cell::kTextId : Cell::kText);
      texts.push_back(column);
    }
  }
  BeginTable(name, numbers, texts);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, statement.Step());
    if (!has_row) return {};
    for (int i = 0; i < static_cast<int>(cells.size()); ++i) {
      const Cell cell = cells[static_cast<std::size_t>(i)];
      const int type = cell == Cell::kMarker ? SQLITE_NULL : statement.ColumnType(i);
      if (cell == Cell::kMarker) {
        continue;
      } else if (type == SQLITE_NULL) {
        NextCell() += "null";
      } else if (cell == Cell::kText) {
        AddText(statement.Text(i));
      } else if (cell == Cell::kTextId) {
        RETURN_IF_ERROR(AddTextOfId(database, statement.Int(i)));
      } else if (type == SQLITE_FLOAT) {
        AddReal(statement.Real(i));
      } else {
        if (cell == Cell::kStack) stack_ids_.insert(statement.Int(i));
        AddNumber(statement.Int(i));
      }
    }
  }
}

void ChunkWriter::BeginTable(std::string_view name, const std::vector<std::string_view>& numbers,
                             const std::vector<std::string_view>& texts) {
  Table& table = tables_.emplace_back();
  table.name = name;
  for (const std::string_view column : numbers)
    table.columns.push_back({std::string(column), false, {}});
  for (const std::string_view column : texts)
    table.columns.push_back({std::string(column), true, {}});
}

std::string& ChunkWriter::NextCell() {
  Table& table = tables_.back();
  std::string& cells = table.columns[table.next_cell++ % table.columns.size()].cells;
  if (!cells.empty()) cells += ',';
  return cells;
}

void ChunkWriter::AddNumber(std::optional<std::int64_t> value) {
  std::string& cells = NextCell();
  if (value) {
    AppendInt(*value, cells);
  } else {
    cells += "null";
  }
}

void ChunkWriter::AddReal(double value) {
  std::string& cells = NextCell();
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(cells), "{}", value);
  } else {
    cells += "null";
  }
}

std::size_t ChunkWriter::StringId(std::string_view text) {
  const auto [entry, is_new] = string_ids_.try_emplace(HashBytes(text), string_ids_.size());
  if (is_new) {
    if (entry->second != 0) strings_ += ',';
    AppendJsonString(text, strings_);
  }
  return entry->second;
}

void ChunkWriter::AddText(std::optional<std::string_view> text) {
  if (!text) {
    NextCell() += "null";
    return;
  }
  const std::size_t id = StringId(*text);
  AppendInt(static_cast<std::int64_t>(id), NextCell());
}

Result<void> ChunkWriter::AddTextOfId(Database& database, std::int64_t text_id) {
  auto known = string_ids_of_texts_.find(text_id);
  if (known == string_ids_of_texts_.end()) {
    ASSIGN_OR_RETURN(const std::string text,
                     database.QueryText("SELECT text FROM text WHERE id = ?", text_id));
    known = string_ids_of_texts_.emplace(text_id, StringId(text)).first;
  }
  AppendInt(static_cast<std::int64_t>(known->second), NextCell());
  return {};
}

std::string ChunkWriter::StackList() const {
  return fmt::format("[{}]", fmt::join(stack_ids_, ","));
}

std::string ChunkWriter::Finish() {
  std::string json = std::move(strings_);
  json += "],\"tables\":{";
  const char* separator = "";
  for (const Table& table : tables_) {
    const std::size_t rows = table.columns.empty() ? 0 : table.next_cell / table.columns.size();
    json += fmt::format("{}\"{}\":{{\"rows\":{}", separator, table.name, rows);
    for (const bool is_text : {false, true}) {
      json += is_text ? ",\"texts\":{" : ",\"numbers\":{";
      const char* comma = "";
      for (const Column& column : table.columns) {
        if (column.is_text != is_text) continue;
        json += fmt::format("{}\"{}\":[{}]", comma, column.name, column.cells);
        comma = ",";
      }
      json += '}';
    }
    json += '}';
    separator = ",";
  }
  json += "}}\n";
  *this = ChunkWriter();
  return json;
}

}  // namespace tlparse
