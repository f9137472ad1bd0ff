#include "store/batch_table.h"

#include <fmt/format.h>

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

}  // namespace

BatchWriter::BatchWriter(const TableSet& tables) : tables_(tables) {}
BatchWriter::~BatchWriter() = default;

Result<std::unique_ptr<BatchWriter>> BatchWriter::Make(Database& database, const TableSet& tables) {
  std::unique_ptr<BatchWriter> writer(new BatchWriter(tables));
  for (const TableSet::Table& table : tables.tables()) {
    auto source = std::make_unique<BatchSource>();
    source->columns = table.columns;
    const std::string module = "batch_" + table.name;
    if (sqlite3_create_module(database.handle(), module.c_str(), &kModule, source.get()) !=
        SQLITE_OK) {
      return Fail(ErrorCode::kInternal,
                  fmt::format("cannot register {}: {}", module, sqlite3_errmsg(database.handle())));
    }
    Result<Statement> insert = database.Prepare(
        fmt::format("INSERT INTO \"{}\" SELECT * FROM \"{}\"", table.name, module));
    if (!insert)
      return Fail(ErrorCode::kInternal,
                  fmt::format("table {}: {}", table.name, insert.error().message));
    writer->inserts_.push_back(std::move(*insert));
    writer->sources_.push_back(std::move(source));
  }
  return writer;
}

Result<void> BatchWriter::Insert(const RowBatch& batch) {
  for (std::size_t index = 0; index < sources_.size(); ++index) {
    const std::vector<Cell>& cells = batch.cells(static_cast<TableId>(index));
    if (cells.empty()) continue;
    if (cells.size() % sources_[index]->columns != 0) {
      return Fail(ErrorCode::kInternal, fmt::format("a row of {} has too few or too many values",
                                                    tables_.tables()[index].name));
    }
    sources_[index]->cells = &cells;
    if (Result<void> inserted = inserts_[index].Run(); !inserted) {
      return Fail(ErrorCode::kDatabase,
                  fmt::format("cannot write table {}: {}", tables_.tables()[index].name,
                              inserted.error().message));
    }
  }
  return {};
}

}  // namespace tlparse
