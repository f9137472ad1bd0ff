#include "store/batch_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace tlparse {

// What a virtual table reads.
struct BatchSource {
  const std::vector<Cell>* cells = nullptr;
  std::size_t columns = 0;
};

namespace {

struct Table : sqlite3_vtab {
  BatchSource* source;
};
struct Cursor : sqlite3_vtab_cursor {
  const Cell* row;
  const Cell* end;
  std::size_t columns;
};

int Connect(sqlite3* database, void* source, int, const char* const*, sqlite3_vtab** table,
            char**) {
  auto* made = new Table();
  made->source = static_cast<BatchSource*>(source);
  std::string declaration = "CREATE TABLE x(";
  for (std::size_t column = 0; column < made->source->columns; ++column) {
    declaration += fmt::format("{}c{}", column == 0 ? "" : ",", column);
  }
  declaration += ")";
  *table = made;
  return sqlite3_declare_vtab(database, declaration.c_str());
}
int Disconnect(sqlite3_vtab* table) {
  delete static_cast<Table*>(table);
  return SQLITE_OK;
}
int BestIndex(sqlite3_vtab*, sqlite3_index_info*) { return SQLITE_OK; }
int OpenCursor(sqlite3_vtab* table, sqlite3_vtab_cursor** cursor) {
  auto* made = new Cursor();
  made->columns = static_cast<Table*>(table)->source->columns;
  *cursor = made;
  return SQLITE_OK;
}
int CloseCursor(sqlite3_vtab_cursor* cursor) {
  delete static_cast<Cursor*>(cursor);
  return SQLITE_OK;
}
int Filter(sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) {
  auto* self = static_cast<Cursor*>(cursor);
  const std::vector<Cell>* cells = static_cast<Table*>(cursor->pVtab)->source->cells;
  self->row = cells->data();
  self->end = cells->data() + cells->size();
  return SQLITE_OK;
}
int Next(sqlite3_vtab_cursor* cursor) {
  auto* self = static_cast<Cursor*>(cursor);
  self->row += self->columns;
  return SQLITE_OK;
}
int Eof(sqlite3_vtab_cursor* cursor) {
  auto* self = static_cast<Cursor*>(cursor);
  return self->row >= self->end ? 1 : 0;
}
int Column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int index) {
  const Cell& cell = static_cast<Cursor*>(cursor)->row[index];
  switch (cell.type) {
    case Cell::Type::kNull:
      sqlite3_result_null(context);
      break;
    case Cell::Type::kInt:
      sqlite3_result_int64(context, cell.integer);
      break;
    case Cell::Type::kReal:
      sqlite3_result_double(context, cell.real);
      break;
    case Cell::Type::kText:
      sqlite3_result_text64(context, cell.bytes, cell.size, SQLITE_STATIC, SQLITE_UTF8);
      break;
    case Cell::Type::kBlob:
      sqlite3_result_blob64(context, cell.bytes, cell.size, SQLITE_STATIC);
      break;
  }
  return SQLITE_OK;
}
int Rowid(sqlite3_vtab_cursor*, sqlite3_int64* rowid) {
  *rowid = 0;
  return SQLITE_OK;
}

sqlite3_module MakeModule() {
  sqlite3_module module{};
  module.xConnect = Connect;  // xCreate stays null: the table exists without CREATE VIRTUAL TABLE,
                              // by its module's name
  module.xBestIndex = BestIndex;
  module.xDisconnect = Disconnect;
  module.xOpen = OpenCursor;
  module.xClose = CloseCursor;
  module.xFilter = Filter;
  module.xNext = Next;
  module.xEof = Eof;
  module.xColumn = Column;
  module.xRowid = Rowid;
  return module;
}
const sqlite3_module kModule = MakeModule();

// Whether the first column is an INTEGER PRIMARY KEY named id, which SQLite fills itself.
bool BeginsWithRowid(Database& database, const TableSet::Table& table) {
  const std::string name(table.name);
  const char* type = nullptr;
  int is_key = 0;
  return table.columns.size() > 1 && table.columns[0] == "id" &&
         sqlite3_table_column_metadata(database.handle(), nullptr, name.c_str(), "id", &type,
                                       nullptr, nullptr, &is_key, nullptr) == SQLITE_OK &&
         is_key != 0 && std::string_view(type) == "INTEGER";
}

// Whether the rows' ids, their first values, are last_id + 1, last_id + 2, …
bool ContinuesRowIds(const std::vector<Cell>& cells, std::size_t columns, std::int64_t last_id) {
  for (std::size_t i = 0; i < cells.size(); i += columns) {
    if (cells[i].type != Cell::Type::kInt || cells[i].integer != ++last_id) return false;
  }
  return true;
}

}  // namespace

BatchWriter::BatchWriter(Database& database, const TableSet& tables)
    : database_(database), tables_(tables) {}
BatchWriter::~BatchWriter() = default;

namespace {

// " WHERE true ON CONFLICT(key) DO UPDATE SET …" for all columns that rows give values for.
Result<std::string> ConflictClause(Database& database, const TableSet::Table& table,
                                   const ReplacedTable& replaced) {
  ASSIGN_OR_RETURN(Statement keys,
                   database.Prepare("SELECT name "
                                    "FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk"));
  keys.Bind(1, table.name);
  std::string key, set;
  std::vector<std::string> names(replaced.constant_columns.begin(),
                                 replaced.constant_columns.end());
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, keys.Step());
    if (!has_row) break;
    names.emplace_back(keys.Text(0));
    key += fmt::format("{}\"{}\"", key.empty() ? "" : ",", names.back());
  }
  for (const std::string_view column : table.columns) {
    if (std::find(names.begin(), names.end(), column) == names.end())
      set += fmt::format("{0}\"{1}\"=coalesce(excluded.\"{1}\",\"{1}\")", set.empty() ? "" : ",",
                         column);
  }
  return fmt::format(" WHERE true ON CONFLICT({}) DO UPDATE SET {}", key, set);
}

}  // namespace

Result<std::unique_ptr<BatchWriter>> BatchWriter::Make(Database& database, const TableSet& tables) {
  return Make(database, tables, {}, true);
}

Result<std::unique_ptr<BatchWriter>> BatchWriter::MakeReplacing(
    Database& database, const TableSet& tables, std::span<const ReplacedTable> replaced) {
  return Make(database, tables, replaced, false);
}

Result<std::unique_ptr<BatchWriter>> BatchWriter::Make(Database& database, const TableSet& tables,
                                                       std::span<const ReplacedTable> replaced,
                                                       bool appends) {
  std::unique_ptr<BatchWriter> writer(new BatchWriter(database, tables));
  for (const TableSet::Table& table : tables.tables()) {
    std::string conflict;
    for (const ReplacedTable& one : replaced) {
      if (one.name != table.name) continue;
      ASSIGN_OR_RETURN(conflict, ConflictClause(database, table, one));
    }
    if (Result<void> added = writer->AddTarget(table, conflict, appends); !added) {
      return Fail(ErrorCode::kInternal,
                  fmt::format("table {}: {}", table.name, added.error().message));
    }
  }
  return writer;
}

Result<void> BatchWriter::AddTarget(const TableSet::Table& table, const std::string& conflict,
                                    bool appends) {
  Target target;
  target.source = std::make_unique<BatchSource>();
  target.source->columns = table.columns.size();
  const std::string module = fmt::format("batch_{}", table.name);
  if (sqlite3_create_module(database_.handle(), module.c_str(), &kModule, target.source.get()) !=
      SQLITE_OK) {
    return Fail(ErrorCode::kInternal,
                fmt::format("cannot register {}: {}", module, sqlite3_errmsg(database_.handle())));
  }
  const auto insert_from = [&](std::size_t first) {
    std::string to, from;
    for (std::size_t i = first; i < table.columns.size(); ++i) {
      to += fmt::format("{}\"{}\"", i == first ? "" : ",", table.columns[i]);
      from += fmt::format("{}c{}", i == first ? "" : ",", i);
    }
    return database_.Prepare(fmt::format("INSERT INTO \"{}\"({}) SELECT {} FROM \"{}\"{}",
                                         table.name, to, from, module, conflict));
  };
  ASSIGN_OR_RETURN(target.insert, insert_from(0));
  if (appends && BeginsWithRowid(database_, table)) {
    ASSIGN_OR_RETURN(target.append, insert_from(1));
  }
  targets_.push_back(std::move(target));
  return {};
}

Result<void> BatchWriter::Insert(const RowBatch& batch) {
  if (!batch.unknown_table().empty()) {
    return Fail(
        ErrorCode::kInternal,
        fmt::format("a row of {} was added, which no one has prepared", batch.unknown_table()));
  }
  for (std::size_t index = 0; index < targets_.size(); ++index) {
    const std::vector<Cell>& cells = batch.cells(static_cast<TableId>(index));
    if (cells.empty()) continue;
    const std::string_view table = tables_.tables()[index].name;
    if (Result<void> inserted = Insert(targets_[index], cells); !inserted) {
      return Fail(ErrorCode::kDatabase,
                  fmt::format("cannot write table {}: {}", table, inserted.error().message));
    }
  }
  return {};
}

Result<void> BatchWriter::Insert(Target& target, const std::vector<Cell>& cells) {
  const std::size_t columns = target.source->columns;
  target.source->cells = &cells;
  const bool appends =
      target.append && target.last_id != 0 && ContinuesRowIds(cells, columns, target.last_id);
  RETURN_IF_ERROR(appends ? target.append->Run() : target.insert.Run());
  if (!target.append) return {};
  for (std::size_t i = 0; i < cells.size(); i += columns)
    target.last_id = std::max(target.last_id, cells[i].integer);
  if (appends && sqlite3_last_insert_rowid(database_.handle()) != target.last_id)
    return Fail(ErrorCode::kInternal, "rows were removed while others were added");
  return {};
}

}  // namespace tlparse
