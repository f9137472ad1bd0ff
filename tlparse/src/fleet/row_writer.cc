#include "fleet/row_writer.h"

#include "fleet/shown_columns.h"

namespace tlparse {
namespace {

using Source = FleetColumn::Source;
using Type = FleetColumn::Type;

}  // namespace

RowWriter::RowWriter(PushContext& context, const FleetTable& table, const RowOptions& options,
                     const std::set<std::string>& columns_there)
    : context_(context), table_(table) {
  select_ = "SELECT ";
  for (std::size_t i = 0; i < table.sqlite_columns.size(); ++i) {
    const SqliteColumn& column = table.sqlite_columns[i];
    if (i > 0) select_ += ", ";
    // A database of an earlier tlparse may lack it.
    select_ += columns_there.count(column.name) ? "r.\"" + column.name + '"' : "NULL";
  }
  for (const FleetColumn& column : table.columns) {
    Step step;
    step.column = &column;
    step.at = column.sqlite_column;
    if (column.sqlite_column >= 0) {
      const SqliteColumn& from =
          table.sqlite_columns[static_cast<std::size_t>(column.sqlite_column)];
      step.reference = from.reference;
      step.referenced = &from.referenced;
    }
    step.is_hidden = !options.with_text &&
                     (column.type == Type::kText || column.type == Type::kAny) &&
                     !IsShown(table, column.name);
    step.is_json = step.is_hidden && column.name == "envelope";
    steps_.push_back(step);
  }
  FindOwners();
  compile_at_ = table.FindSqlite(table.name == "compile" ? "id" : "compile_id");
  graph_at_ = table.FindSqlite("graph_id");
  layer_at_ = table.FindSqlite("layer_id");
  id_at_ = table.has_id ? table.FindSqlite("id") : -1;
}

Result<std::int64_t> RowWriter::ProcessOf(const Statement& row) {
  for (const Owner& owner : owners_) {
    if (row.IsNull(owner.at)) continue;
    const std::int64_t id = row.Int(owner.at);
    std::int64_t process = PushContext::kNone;
    switch (owner.kind) {
      case Owner::Kind::kProcess:
        process = id;
        break;
      case Owner::Kind::kCompile:
        process = context_.ProcessOfCompile(id);
        break;
      case Owner::Kind::kGraph:
        process = context_.ProcessOfCompile(context_.CompileOfGraph(id));
        break;
      case Owner::Kind::kTable:
        process = context_.ProcessOf(owner.table, id);
        break;
      case Owner::Kind::kRecord: {
        ASSIGN_OR_RETURN(process, context_.ProcessOfRecord(id));
        break;
      }
    }
    if (process != PushContext::kNone) return process;
  }
  return PushContext::kNone;
}

Result<void> RowWriter::Write(const Statement& row, std::int64_t process, std::string& out) {
  RowBinaryWriter write(out);
  process_ = process;
  for (const Step& step : steps_) RETURN_IF_ERROR(WriteColumn(row, step, write));
  if (id_at_ >= 0 && process != PushContext::kNone && table_.name != "record")
    context_.SetProcess(table_.name, row.Int(id_at_), process);
  return {};
}

void RowWriter::FindOwners() {
  const auto add = [&](const char* column, Owner::Kind kind) {
    const int at = table_.FindSqlite(column);
    if (at >= 0) owners_.push_back({kind, at, {}});
  };
  if (table_.name == "process") {
    add("id", Owner::Kind::kProcess);
    return;
  }
  if (table_.name == "compile" || table_.name == "record") {
    add("process_id", Owner::Kind::kProcess);
    return;
  }
  add("process_id", Owner::Kind::kProcess);
  add("compile_id", Owner::Kind::kCompile);
  add("graph_id", Owner::Kind::kGraph);
  for (std::size_t i = 0; i < table_.sqlite_columns.size(); ++i) {
    const SqliteColumn& column = table_.sqlite_columns[i];
    if (column.reference == ColumnReference::kFact && column.referenced != table_.name)
      owners_.push_back({Owner::Kind::kTable, static_cast<int>(i), column.referenced});
  }
  add("record_id", Owner::Kind::kRecord);
}

std::int64_t RowWriter::CompileOf(const Statement& row) const {
  if (compile_at_ >= 0 && !row.IsNull(compile_at_)) return row.Int(compile_at_);
  if (graph_at_ >= 0 && !row.IsNull(graph_at_)) return context_.CompileOfGraph(row.Int(graph_at_));
  return PushContext::kNone;
}

std::int64_t RowWriter::GraphOf(const Statement& row) const {
  return graph_at_ >= 0 && !row.IsNull(graph_at_) ? row.Int(graph_at_) : PushContext::kNone;
}

void RowWriter::WriteOptional(std::int64_t value, bool is_null, RowBinaryWriter& write) {
  write.NullFlag(is_null);
  if (!is_null) write.Int64(value);
}

Result<void> RowWriter::WriteColumn(const Statement& row, const Step& step,
                                    RowBinaryWriter& write) {
  switch (step.column->source) {
    case Source::kColumn:
      return WriteValue(row, step, write);
    case Source::kHash:
      return WriteHash(row, step, write);
    case Source::kPayloadContent:
      write.Hash(row.IsNull(step.at) ? Hash128{} : context_.PayloadContent(row.Int(step.at)));
      return {};
    case Source::kIsBlob: {
      const int type = row.ColumnType(step.at);
      write.Int64(type == SQLITE_BLOB      ? 1
                  : type == SQLITE_INTEGER ? 2
                  : type == SQLITE_FLOAT   ? 3
                                           : 0);
      return {};
    }
    case Source::kProcess:
      WriteOptional(process_, process_ == PushContext::kNone, write);
      return {};
    case Source::kProcessRank: {
      const std::vector<std::int64_t>& ranks = context_.run().rank_of_process;
      const std::int64_t rank = process_ >= 0 && static_cast<std::size_t>(process_) < ranks.size()
                                    ? ranks[static_cast<std::size_t>(process_)]
                                    : RunSelection::kNoRank;
      WriteOptional(rank, rank == RunSelection::kNoRank, write);
      return {};
    }
    case Source::kFunction:
      write.Text(context_.Function(CompileOf(row)));
      return {};
    case Source::kLabel:
      write.Text(context_.Label(CompileOf(row)));
      return {};
    case Source::kDirection:
      write.Text(context_.Direction(GraphOf(row)));
      return {};
    case Source::kGeneration:
      write.Int64(context_.Generation(CompileOf(row)));
      return {};
    case Source::kCompileUs: {
      const std::int64_t duration_us = context_.CompileUs(CompileOf(row));
      WriteOptional(duration_us, duration_us == PushContext::kNone, write);
      return {};
    }
    case Source::kLookupOrdinal:
      write.Int64(context_.NextLookup(CompileOf(row), layer_at_ < 0 ? 0 : row.Int(layer_at_),
                                      GraphOf(row)));
      return {};
  }
  return {};
}

Result<void> RowWriter::WriteHash(const Statement& row, const Step& step, RowBinaryWriter& write) {
  if (row.IsNull(step.at)) {
    write.Hash({});
    return {};
  }
  const std::int64_t id = row.Int(step.at);
  Hash128 hash;
  switch (step.reference) {
    case ColumnReference::kContent:
      hash = context_.ContentHash(id);
      break;
    case ColumnReference::kPayload: {
      ASSIGN_OR_RETURN(hash, context_.PayloadHash(id));
      break;
    }
    case ColumnReference::kComponentSet:
      hash = context_.SetKey(id);
      break;
    case ColumnReference::kOwned:
      if (const PushContext::Owned* owned = context_.FindOwned(*step.referenced, id))
        hash = context_.ContentHash(owned->content);
      break;
    default:
      break;
  }
  write.Hash(hash);
  return {};
}

void RowWriter::NoteUse(const Step& step, std::int64_t id) {
  switch (step.reference) {
    case ColumnReference::kContent:
      context_.used.contents.Add(id);
      break;
    case ColumnReference::kPayload:
      context_.used.payloads.Add(id);
      break;
    case ColumnReference::kComponentSet:
      context_.used.sets.Add(id);
      break;
    case ColumnReference::kKey:
      context_.used.keys.Add(id);
      break;
    case ColumnReference::kFact:
      if (*step.referenced == "stack_frame") context_.used.stacks.Add(id);
      break;
    default:
      break;
  }
}

Result<void> RowWriter::WriteValue(const Statement& row, const Step& step, RowBinaryWriter& write) {
  const bool is_null = row.IsNull(step.at);
  if (step.column->is_nullable) {
    write.NullFlag(is_null || (step.is_hidden && step.column->name == "metadata"));
    if (is_null || (step.is_hidden && step.column->name == "metadata")) return {};
  }
  if (step.reference == ColumnReference::kText) {
    const std::int64_t id = row.Int(step.at);
    context_.used.texts.Add(id);
    ASSIGN_OR_RETURN(const std::string_view text, context_.texts().Get(id));
    WriteText(text, step, write);
    return {};
  }
  switch (step.column->type) {
    case Type::kInt: {
      const std::int64_t id = row.Int(step.at);
      if (step.reference == ColumnReference::kOwned) {
        const PushContext::Owned* owned = context_.FindOwned(*step.referenced, id);
        write.Int64(owned == nullptr ? -1 : owned->number);
        if (owned != nullptr) context_.used.contents.Add(owned->content);
        return {};
      }
      if (step.at == id_at_ && table_.kind == FleetTable::Kind::kContent) {
        // Its own id is a number within the content.
        const PushContext::Owned* own = context_.FindOwned(table_.name, id);
        write.Int64(own == nullptr ? -1 : own->number);
        return {};
      }
      NoteUse(step, id);
      write.Int64(id);
      return {};
    }
    case Type::kReal:
      write.Real(row.Real(step.at));
      return {};
    default:
      WriteText(row.Text(step.at), step, write);
  }
  return {};
}

void RowWriter::WriteText(std::string_view text, const Step& step, RowBinaryWriter& write) {
  if (step.is_json) {
    write.Text("{}");
  } else if (step.is_hidden) {
    write.Text(HiddenText(text));
  } else {
    write.Text(text);
  }
}

}  // namespace tlparse
