#include "report/viewer/chunk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/json_writer.h"
#include "queries/report/viewer/chunk.h"

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
  enum class CellKind : std::uint8_t { kNumber, kStack, kMarker, kText, kTextId };
  std::vector<CellKind> cells;
  std::vector<std::string_view> numbers;
  std::vector<std::string_view> texts;
  bool is_text = false;
  for (int i = 0; i < statement.column_count(); ++i) {
    std::string_view column = statement.ColumnName(i);
    if (column == "|") {
      cells.push_back(CellKind::kMarker);
      is_text = true;
    } else if (!is_text) {
      cells.push_back(column == "stack_id" || column == "user_stack_id" ? CellKind::kStack
                                                                        : CellKind::kNumber);
      numbers.push_back(column);
    } else {
      constexpr std::string_view kIdMark = "@text";
      const bool is_id = column.ends_with(kIdMark);
      if (is_id) column.remove_suffix(kIdMark.size());
      cells.push_back(is_id ? CellKind::kTextId : CellKind::kText);
      texts.push_back(column);
    }
  }
  BeginTable(name, numbers, texts);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, statement.Step());
    if (!has_row) return {};
    for (int i = 0; i < static_cast<int>(cells.size()); ++i) {
      const CellKind cell = cells[static_cast<std::size_t>(i)];
      if (cell == CellKind::kMarker) continue;
      sqlite3_value* const value = sqlite3_column_value(statement.handle(), i);
      const int type = sqlite3_value_type(value);
      if (type == SQLITE_NULL) {
        NextCell() += "null";
      } else if (cell == CellKind::kText) {
        AddText(statement.Text(i));
      } else if (type == SQLITE_FLOAT) {
        AddReal(sqlite3_value_double(value));
      } else if (const std::int64_t number = sqlite3_value_int64(value);
                 cell == CellKind::kTextId) {
        RETURN_IF_ERROR(AddTextOfId(database, number));
      } else {
        if (cell == CellKind::kStack) stack_ids_.insert(number);
        AddNumber(number);
      }
    }
  }
}

Result<void> ChunkWriter::AddFrames(Database& database, std::string_view name) {
  struct Frame {
    std::int64_t id;
    std::optional<std::int64_t> parent_id, line, file, function, code;  // texts: as StringId
  };
  const auto string_id = [&](const std::optional<std::string_view>& text) {
    return text ? std::optional(static_cast<std::int64_t>(StringId(*text))) : std::nullopt;
  };
  std::vector<Frame> frames;
  std::unordered_set<std::int64_t> known;
  for (const std::int64_t stack_id : stack_ids_) {
    for (std::int64_t id = stack_id; id != 0 && known.insert(id).second;
         id = frames.back().parent_id.value_or(0)) {
      ASSIGN_OR_RETURN(const FirstRow<FrameOfChunk> frame,
                       First(KeptQuery<FrameOfChunk>(database, {.id = id})));
      if (!frame) break;
      frames.push_back({id, frame->parent_id, frame->line, string_id(frame->file),
                        string_id(frame->function), string_id(frame->code)});
    }
  }
  std::sort(frames.begin(), frames.end(),
            [](const Frame& a, const Frame& b) { return a.id < b.id; });
  BeginTable(name, {"id", "parent_id", "line"}, {"file", "function", "code"});
  for (const Frame& f : frames) {
    for (const std::optional<std::int64_t>& cell :
         {std::optional(f.id), f.parent_id, f.line, f.file, f.function, f.code})
      AddNumber(cell);
  }
  return {};
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
  std::string& cells = table.columns[table.next_column].cells;
  if (++table.next_column == table.columns.size()) {
    table.next_column = 0;
    ++table.rows;
  }
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

std::size_t ChunkWriter::NewStringId(std::string_view text) {
  if (string_count_ != 0) strings_ += ',';
  AppendJsonString(text, strings_);
  return string_count_++;
}

std::size_t ChunkWriter::StringId(std::string_view text) {
  const auto [entry, is_new] = string_ids_.try_emplace(HashBytes(text));
  if (is_new) entry->second = NewStringId(text);
  return entry->second;
}

void ChunkWriter::AddNewText(std::string_view text) {
  const std::size_t id = NewStringId(text);
  AppendInt(static_cast<std::int64_t>(id), NextCell());
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
                     database.QueryText("SELECT text FROM text_row WHERE id = ?", text_id));
    known = string_ids_of_texts_.emplace(text_id, StringId(text)).first;
  }
  AppendInt(static_cast<std::int64_t>(known->second), NextCell());
  return {};
}

std::string ChunkWriter::Finish() {
  JsonWriter tables;
  tables.BeginObject();
  for (const Table& table : tables_) {
    tables.Key(table.name).BeginObject().Key("rows").Int(static_cast<std::int64_t>(table.rows));
    for (const bool is_text : {false, true}) {
      tables.Key(is_text ? "texts" : "numbers").BeginObject();
      for (const Column& column : table.columns)
        if (column.is_text == is_text)
          tables.Key(column.name).BeginArray().Raw(column.cells).EndArray();
      tables.EndObject();
    }
    tables.EndObject();
  }
  std::string json = std::move(strings_) + "],\"tables\":" + tables.EndObject().text() + "}\n";
  *this = ChunkWriter();
  return json;
}

}  // namespace tlparse
