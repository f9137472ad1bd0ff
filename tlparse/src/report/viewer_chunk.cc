#include "report/viewer_chunk.h"

#include <fmt/format.h>

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

Result<void> ChunkWriter::AddTable(Database& database, std::string_view name, const std::string& sql,
                                   const ViewerParameters& parameters) {
  ASSIGN_OR_RETURN(Statement* const kept, database.PrepareKept(sql));
  Statement& statement = *kept;
  for (const auto& [parameter, value] : parameters) {
    if (const int index = sqlite3_bind_parameter_index(statement.handle(), parameter); index != 0)
      statement.Bind(index, value);
  }
  std::vector<std::string_view> numbers;
  std::vector<std::string_view> texts;
  int marker = -1;
  for (int i = 0; i < statement.column_count(); ++i) {
    if (statement.ColumnName(i) == "|") {
      marker = i;
    } else {
      (marker < 0 ? numbers : texts).push_back(statement.ColumnName(i));
    }
  }
  BeginTable(name, numbers, texts);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, statement.Step());
    if (!has_row) return {};
    for (int i = 0; i < statement.column_count(); ++i) {
      if (i == marker) continue;
      if (statement.IsNull(i)) {
        i < marker ? AddNumber(std::nullopt) : AddText(std::nullopt);
      } else if (i > marker) {
        AddText(statement.Text(i));
      } else if (statement.ColumnType(i) == SQLITE_FLOAT) {
        AddReal(statement.Real(i));
      } else {
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

void ChunkWriter::AddText(std::optional<std::string_view> text) {
  if (!text) {
    NextCell() += "null";
    return;
  }
  const auto [entry, is_new] = string_ids_.try_emplace(HashBytes(*text), string_ids_.size());
  if (is_new) {
    if (entry->second != 0) strings_ += ',';
    AppendJsonString(*text, strings_);
  }
  AppendInt(static_cast<std::int64_t>(entry->second), NextCell());
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
