#include "fleet/fleet_schema.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <tuple>

#include "fleet/sql_quote.h"
#include "store/any_rows.h"
#include "store/schema.h"

namespace tlparse {
namespace {

using Source = FleetColumn::Source;
using Type = FleetColumn::Type;

// Rebuilt by a pull, constant, defined separately (schemas/clickhouse/fleet.sql), or of two runs of
// one database.
constexpr std::array<std::string_view, 13> kNotDerived = {
    "experiment",     "schema_doc",     "kernel_line",  "payload",   "payload_hash",
    "compile_record", "record_kind",    "import_code",  "component", "component_set",
    "component_hash", "component_list", "component_run"};
// Rows that facts refer to and that belong to no process.
constexpr std::array<std::string_view, 5> kPools = {"text", "cache_key", "stack_frame", "content",
                                                    "payload_content"};
// Rows of these are found from any row that belongs to a process.
constexpr std::array<std::string_view, 5> kOwners = {"run", "log_file", "process", "compile",
                                                     "record"};

// References that the schema does not declare: ranges of ids, and rows that may have been removed.
struct Undeclared {
  std::string_view table, column, referenced;
};
constexpr std::array kUndeclared = {
    Undeclared{"log_file", "first_record_id", "record"},
    Undeclared{"log_file", "last_record_id", "record"},
    Undeclared{"process", "first_record_id", "record"},
    Undeclared{"process", "last_record_id", "record"},
    Undeclared{"compile", "first_record_id", "record"},
    Undeclared{"compile", "last_record_id", "record"},
    Undeclared{"content", "record_id", "record"},
    Undeclared{"chromium_event", "begin_record_id", "record"},
};
// Ids of the log or profile, which mean the same everywhere; ranges of contents, which a pull of
// several loads leaves out. Table "": in any.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kIdsOfTheLog = {{
    {"log_file", "first_content_id"},
    {"log_file", "last_content_id"},
    {"compile", "compiled_autograd_id"},
    {"compile", "frame_id"},
    {"graph", "aot_id"},
    {"process", "is_thread_id"},
    {"compile", "frame_compile_id"},
    {"model_weight", "storage_id"},
    {"", "external_id"},
    {"recorder_entry", "recorder_id"},
    {"recorder_entry", "pg_id"},
    {"", "collective_seq_id"},
    {"", "p2p_seq_id"},
    {"recorder_entry", "op_id"},
    {"recorder_entry", "thread_id"},
    {"gpu_activity", "cuda_graph_id"},
    {"gpu_activity", "cuda_graph_node_id"},
}};

template <typename Names>
bool IsOneOf(std::string_view name, const Names& names) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool EndsWithId(std::string_view name) {
  return name.size() > 3 && name.substr(name.size() - 3) == "_id";
}

Type TypeOf(std::string_view declared) {
  if (declared == "INTEGER" || declared == "INT") return Type::kInt;
  if (declared == "REAL") return Type::kReal;
  if (declared == "TEXT") return Type::kText;
  return Type::kAny;
}

struct RawTable {
  FleetTable table;
  std::vector<Type> types;
};

Result<RawTable> ReadTable(Database& database, const std::string& name) {
  RawTable raw;
  raw.table.sqlite_name = name;
  raw.table.name = PublicName(name);
  ASSIGN_OR_RETURN(
      Statement columns,
      database.Prepare("SELECT name, type, \"notnull\", pk FROM pragma_table_info(?)"));
  columns.Bind(1, std::string_view(name));
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(std::move(columns))) {
    SqliteColumn column;
    column.name = row.Text("name");
    column.is_nullable = row.Int("notnull") == 0 && row.Int("pk") == 0;
    column.key_ordinal = static_cast<int>(row.Int("pk"));
    raw.types.push_back(TypeOf(row.Text("type")));
    raw.table.sqlite_columns.push_back(std::move(column));
  }
  ASSIGN_OR_RETURN(Statement references,
                   database.Prepare("SELECT \"from\", \"table\" FROM pragma_foreign_key_list(?)"));
  references.Bind(1, std::string_view(name));
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(std::move(references))) {
    const int column = raw.table.FindSqlite(row.Text("from"));
    if (column >= 0)
      raw.table.sqlite_columns[static_cast<std::size_t>(column)].referenced =
          PublicName(row.Text("table"));
  }
  for (const Undeclared& one : kUndeclared) {
    const int column = one.table == raw.table.name ? raw.table.FindSqlite(one.column) : -1;
    if (column >= 0)
      raw.table.sqlite_columns[static_cast<std::size_t>(column)].referenced = one.referenced;
  }
  const int id = raw.table.FindSqlite("id");
  raw.table.has_id =
      id >= 0 && raw.table.sqlite_columns[static_cast<std::size_t>(id)].key_ordinal == 1;
  return raw;
}

Result<std::vector<RawTable>> ReadTables(Database& database) {
  std::vector<std::string> names;
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(database,
                                              "SELECT name FROM sqlite_schema WHERE type = 'table' "
                                              "AND name NOT LIKE 'sqlite_%' ORDER BY rowid")) {
    names.emplace_back(row.Text("name"));
  }
  std::vector<RawTable> tables;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(RawTable table, ReadTable(database, name));
    tables.push_back(std::move(table));
  }
  return tables;
}

// id, name and facts of them: the same rows in every database.
bool IsLookupTable(const RawTable& raw) {
  const std::vector<SqliteColumn>& columns = raw.table.sqlite_columns;
  return raw.table.has_id && columns.size() >= 2 && columns[1].name == "name" &&
         std::all_of(columns.begin() + 2, columns.end(), [](const SqliteColumn& column) {
           return column.name.starts_with("is_") || column.name.starts_with("has_");
         });
}

// Without the lookup tables: a fleet has their ids as numbers.
Result<std::vector<RawTable>> TablesOfThisProgram() {
  ASSIGN_OR_RETURN(Database database, SchemaInMemory());
  ASSIGN_OR_RETURN(std::vector<RawTable> tables, ReadTables(database));
  std::set<std::string> lookup_tables;
  for (const RawTable& raw : tables)
    if (IsLookupTable(raw)) lookup_tables.insert(raw.table.name);
  std::erase_if(tables, IsLookupTable);
  for (RawTable& raw : tables)
    for (SqliteColumn& column : raw.table.sqlite_columns)
      if (lookup_tables.contains(column.referenced)) column.referenced.clear();
  return tables;
}

bool Refers(const FleetTable& table, std::string_view to, bool must_exist) {
  return std::any_of(table.sqlite_columns.begin(), table.sqlite_columns.end(),
                     [&](const SqliteColumn& column) {
                       return column.referenced == to && !(must_exist && column.is_nullable);
                     });
}

// Tables whose rows belong to a content: directly, or through a row of such a table.
std::set<std::string> ContentTables(const std::vector<RawTable>& tables) {
  std::set<std::string> owned;
  for (bool is_new = true; is_new;) {
    is_new = false;
    for (const RawTable& raw : tables) {
      const FleetTable& table = raw.table;
      if (IsOneOf(table.name, kNotDerived) || IsOneOf(table.name, kPools) ||
          owned.count(table.name))
        continue;
      const bool is_of_process =
          std::any_of(kOwners.begin(), kOwners.end(),
                      [&](std::string_view owner) { return Refers(table, owner, false); });
      if (is_of_process) continue;
      const bool is_owned = Refers(table, "content", true) ||
                            std::any_of(owned.begin(), owned.end(), [&](const std::string& parent) {
                              return Refers(table, parent, true);
                            });
      if (is_owned) is_new = owned.insert(table.name).second || is_new;
    }
  }
  return owned;
}

ColumnReference ReferenceTo(const std::string& table, const std::set<std::string>& owned) {
  if (table.empty()) return ColumnReference::kNone;
  if (table == "text") return ColumnReference::kText;
  if (table == "content") return ColumnReference::kContent;
  if (table == "payload") return ColumnReference::kPayload;
  if (table == "component_set") return ColumnReference::kComponentSet;
  if (table == "cache_key") return ColumnReference::kKey;
  if (owned.count(table)) return ColumnReference::kOwned;
  return ColumnReference::kFact;
}

std::string WithoutId(const std::string& name) {
  return EndsWithId(name) ? name.substr(0, name.size() - 3) : name;
}

// The columns that one column of the database becomes.
void AddColumn(FleetTable& table, int index, Type type) {
  const SqliteColumn& from = table.sqlite_columns[static_cast<std::size_t>(index)];
  FleetColumn column{from.name, type, Source::kColumn, from.is_nullable, index};
  // The database's own id of the run, beside that of the fleet.
  if (IsOneOf(column.name, kFactKey)) column.name = "local_" + column.name;
  const std::string base = WithoutId(from.name);
  switch (from.reference) {
    case ColumnReference::kText:
      column.type = Type::kText;
      column.name = table.FindSqlite(base) < 0 ? base : from.name;
      table.columns.push_back(column);
      return;
    case ColumnReference::kContent:
      if (table.kind != FleetTable::Kind::kContent) {
        table.columns.push_back(column);
        table.columns.push_back({base + "_hash", Type::kHash, Source::kHash, false, index});
      }
      return;
    case ColumnReference::kOwned:
      table.columns.push_back(column);
      if (table.kind != FleetTable::Kind::kContent)
        table.columns.push_back({base + "_content_hash", Type::kHash, Source::kHash, false, index});
      return;
    case ColumnReference::kPayload:
      table.columns.push_back(column);
      table.columns.push_back({base + "_hash", Type::kHash, Source::kHash, false, index});
      if (table.name == "record")
        table.columns.push_back(
            {base + "_content_hash", Type::kHash, Source::kPayloadContent, false, index});
      return;
    case ColumnReference::kComponentSet:
      table.columns.push_back(column);
      table.columns.push_back({base + "_hash", Type::kHash, Source::kHash, false, index});
      return;
    default:
      table.columns.push_back(column);
  }
}

void AddOwnerColumns(FleetTable& table) {
  const bool is_of_process =
      table.name != "run" && table.name != "log_file" &&
      std::any_of(table.sqlite_columns.begin(), table.sqlite_columns.end(),
                  [](const SqliteColumn& column) {
                    return column.reference == ColumnReference::kFact &&
                           column.referenced != "run" && column.referenced != "log_file" &&
                           column.referenced != "stack_frame" && column.referenced != "launch";
                  });
  const auto add = [&](const char* name, Type type, Source source, bool is_nullable) {
    table.columns.push_back({name, type, source, is_nullable, -1});
  };
  if (table.name == "process") {
    add("process_rank", Type::kInt, Source::kProcessRank, true);
    return;
  }
  if (!is_of_process) return;
  if (table.FindSqlite("process_id") < 0) add("process_id", Type::kInt, Source::kProcess, true);
  add("process_rank", Type::kInt, Source::kProcessRank, true);
  if (table.FindSqlite("compile_id") >= 0 && table.name != "record" && table.name != "attempt" &&
      table.name != "chromium_event") {
    if (table.FindSqlite("function") < 0) add("function", Type::kText, Source::kFunction, false);
    if (table.FindSqlite("label") < 0) add("label", Type::kText, Source::kLabel, false);
    if (table.FindSqlite("graph_id") >= 0 && table.FindSqlite("direction") < 0)
      add("direction", Type::kText, Source::kDirection, false);
  }
  if (table.name == "cache_event") add("generation", Type::kInt, Source::kGeneration, false);
  if (table.name == "graph_break" || table.name == "recompile" || table.name == "failure")
    add("compile_us", Type::kInt, Source::kCompileUs, true);
  if (table.name == "cache_event") add("lookup_ordinal", Type::kInt, Source::kLookupOrdinal, false);
}

void SetOrder(FleetTable& table) {
  std::vector<std::pair<int, std::string>> key;
  for (const FleetColumn& column : table.columns) {
    if (column.source != Source::kColumn) continue;
    const int ordinal =
        table.sqlite_columns[static_cast<std::size_t>(column.sqlite_column)].key_ordinal;
    if (ordinal > 0) key.emplace_back(ordinal, column.name);
  }
  std::sort(key.begin(), key.end());
  for (auto& [ordinal, name] : key) table.order_by.push_back(std::move(name));
}

// Tables that others refer to come first; otherwise as in the schema.
void SortByReference(std::vector<FleetTable>& tables) {
  std::vector<FleetTable> sorted;
  std::set<std::string> done;
  std::function<void(const FleetTable&)> visit = [&](const FleetTable& table) {
    if (!done.insert(table.name).second) return;
    for (const SqliteColumn& column : table.sqlite_columns)
      for (const FleetTable& other : tables)
        // What is read first of a process must not wait for its records.
        if (other.name == column.referenced && other.name != "record") visit(other);
    sorted.push_back(table);
  };
  for (const FleetTable& table : tables) visit(table);
  tables = std::move(sorted);
}

}  // namespace

std::string_view PublicName(std::string_view table) {
  return table.size() > 4 && table.substr(table.size() - 4) == "_row"
             ? table.substr(0, table.size() - 4)
             : table;
}

int FleetTable::FindSqlite(std::string_view column) const {
  for (std::size_t i = 0; i < sqlite_columns.size(); ++i)
    if (sqlite_columns[i].name == column) return static_cast<int>(i);
  return -1;
}

const FleetTable* FleetSchema::Find(std::string_view name) const {
  for (const FleetTable& table : tables)
    if (table.name == name) return &table;
  return nullptr;
}

Result<FleetSchema> MakeFleetSchema() {
  ASSIGN_OR_RETURN(std::vector<RawTable> raw_tables, TablesOfThisProgram());
  const std::set<std::string> owned = ContentTables(raw_tables);
  FleetSchema schema;
  for (RawTable& raw : raw_tables) {
    FleetTable& table = raw.table;
    if (IsOneOf(table.name, kNotDerived)) continue;
    table.kind = owned.count(table.name)       ? FleetTable::Kind::kContent
                 : IsOneOf(table.name, kPools) ? FleetTable::Kind::kPool
                                               : FleetTable::Kind::kFact;
    for (SqliteColumn& column : table.sqlite_columns)
      column.reference = ReferenceTo(column.referenced, owned);
    for (std::size_t i = 0; i < table.sqlite_columns.size(); ++i) {
      AddColumn(table, static_cast<int>(i), raw.types[i]);
      // A value of any type: followed by its type.
      if (raw.types[i] == Type::kAny)
        table.columns.push_back({table.sqlite_columns[i].name + "_is_blob", Type::kInt,
                                 Source::kIsBlob, false, static_cast<int>(i)});
    }
    if (table.kind == FleetTable::Kind::kFact) AddOwnerColumns(table);
    SetOrder(table);
    schema.tables.push_back(std::move(table));
  }
  SortByReference(schema.tables);
  return schema;
}

Result<std::vector<std::string>> UnexplainedIds() {
  ASSIGN_OR_RETURN(const std::vector<RawTable> tables, TablesOfThisProgram());
  std::vector<std::string> unexplained;
  for (const RawTable& raw : tables) {
    if (IsOneOf(raw.table.name, kNotDerived)) continue;
    for (const SqliteColumn& column : raw.table.sqlite_columns) {
      const auto is_of_log = [&](const auto& place) {
        return place.second == column.name &&
               (place.first.empty() || place.first == raw.table.name);
      };
      if (EndsWithId(column.name) && column.referenced.empty() &&
          std::none_of(kIdsOfTheLog.begin(), kIdsOfTheLog.end(), is_of_log))
        unexplained.push_back(raw.table.name + "." + column.name);
    }
  }
  return unexplained;
}

std::string ClickHouseType(const FleetColumn& column) {
  std::string type;
  switch (column.type) {
    case Type::kInt:
      type = "Int64";
      break;
    case Type::kReal:
      type = "Float64";
      break;
    case Type::kText:
    case Type::kAny:
      type = "String";
      break;
    case Type::kHash:
      return "FixedString(16)";
  }
  return column.is_nullable ? "Nullable(" + type + ")" : type;
}

}  // namespace tlparse
