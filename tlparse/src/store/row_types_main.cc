// Writes the C++ side of the schema: one struct per table and one enum per lookup table. Run at
// build time.
// usage: tlparse_row_types DIRECTORY SCRIPT.sql …
//
// The scripts are executed in this order in an empty database; SQLite then says which columns each
// table has. For each script that makes tables, DIRECTORY gets rows/<stem>.h, and if one of them is
// a lookup table, enums/<stem>.h. A file whose text would not change is not touched, so that only
// the sources that use a changed table are compiled again.
//
// A lookup table has the columns `id INTEGER PRIMARY KEY, name TEXT NOT NULL`, and its script
// inserts its rows. A column that references it has the type of the enum.
#include <sqlite3.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

struct Column {
  std::string name;
  std::string type;  // as declared
  bool may_be_null = true;
  std::string lookup_table;  // referenced; "": none
};
struct Table {
  std::string name;
  std::string script_stem;
  std::vector<Column> columns;
  std::vector<std::pair<long long, std::string>> names;  // of a lookup table
};

[[noreturn]] void Stop(const std::string& message) { throw std::runtime_error(message); }

class Schema {
 public:
  Schema() {
    if (sqlite3_open(":memory:", &database_) != SQLITE_OK) Stop("cannot open a database in memory");
  }
  ~Schema() { sqlite3_close(database_); }
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

  void Run(const std::string& path);
  const std::vector<Table>& tables() const { return tables_; }

 private:
  using Rows = std::vector<std::vector<std::string>>;
  Rows Query(const std::string& sql);
  Table Describe(const std::string& name, const std::string& stem);

  sqlite3* database_ = nullptr;
  std::vector<Table> tables_;
  std::set<std::string> lookup_tables_;
};

Schema::Rows Schema::Query(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
    Stop(sql + ": " + sqlite3_errmsg(database_));
  Rows rows;
  while (sqlite3_step(statement) == SQLITE_ROW) {
    std::vector<std::string>& row = rows.emplace_back();
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
      row.emplace_back(text == nullptr ? "" : text);
    }
  }
  sqlite3_finalize(statement);
  return rows;
}

void Schema::Run(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string sql{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) Stop(path + ": cannot be read");
  char* error = nullptr;
  if (sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, &error) != SQLITE_OK)
    Stop(path + ": " + (error == nullptr ? "SQLite refuses it" : error));
  std::set<std::string> known;
  for (const Table& table : tables_) known.insert(table.name);
  const std::string stem = std::filesystem::path(path).stem().string();
  std::vector<std::string> added;
  for (const auto& row : Query("SELECT name FROM sqlite_schema "
                               "WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"))
    if (!known.contains(row[0])) added.push_back(row[0]);
  // Lookup tables first: a script may use its own.
  for (const std::string& name : added) {
    const Rows columns =
        Query("SELECT name, type, \"notnull\", pk FROM pragma_table_info('" + name + "')");
    const Rows wanted{{"id", "INTEGER", "0", "1"}, {"name", "TEXT", "1", "0"}};
    if (columns == wanted && Query("SELECT count(*) FROM \"" + name + "\"")[0][0] != "0")
      lookup_tables_.insert(name);
  }
  for (const std::string& name : added) tables_.push_back(Describe(name, stem));
}

Table Schema::Describe(const std::string& name, const std::string& stem) {
  Table table{name, stem, {}, {}};
  std::map<std::string, std::string> references;
  for (const auto& row :
       Query("SELECT \"from\", \"table\" FROM pragma_foreign_key_list('" + name + "')"))
    if (lookup_tables_.contains(row[1])) references[row[0]] = row[1];
  for (const auto& row :
       Query("SELECT name, type, \"notnull\" OR pk FROM pragma_table_info('" + name + "')"))
    table.columns.push_back({row[0], row[1], row[2] == "0", references[row[0]]});
  if (lookup_tables_.contains(name)) {
    for (const auto& row : Query("SELECT id, name FROM \"" + name + "\" ORDER BY id"))
      table.names.emplace_back(std::stoll(row[0]), row[1]);
  }
  return table;
}

// cache_event_row → CacheEventRow.
std::string CamelCase(std::string_view name) {
  std::string camel;
  bool begins_word = true;
  for (const char c : name) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_letter && !(c >= '0' && c <= '9')) {
      begins_word = true;
      continue;
    }
    camel += begins_word && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    begins_word = false;
  }
  return camel;
}

std::string RowName(std::string_view table) {
  const std::string_view suffix = "_row";
  if (table.ends_with(suffix)) table.remove_suffix(suffix.size());
  return CamelCase(table) + "Row";
}

std::string Member(const std::string& column) {
  static const std::set<std::string> kReserved = {
      "and",    "auto",   "bool",     "case",     "char",    "class",  "const", "default", "do",
      "double", "enum",   "explicit", "export",   "extern",  "false",  "float", "int",     "long",
      "new",    "not",    "or",       "operator", "private", "public", "short", "signed",  "static",
      "struct", "switch", "template", "this",     "true",    "union",  "using", "void",    "while"};
  return kReserved.contains(column) ? column + "_" : column;
}

std::string CppType(const Table& table, const Column& column) {
  const auto number = [&](const std::string& type) {
    return (column.may_be_null ? "std::optional<" : "NotNull<") + type + ">";
  };
  if (!column.lookup_table.empty()) return number(CamelCase(column.lookup_table));
  if (column.type == "INTEGER") return number("std::int64_t");
  if (column.type == "REAL") return number("double");
  if (column.type == "TEXT") return column.may_be_null ? "std::optional<RowText>" : "RowText";
  if (column.type == "ANY") return number("StaticAny");
  Stop(table.name + "." + column.name + ": the type '" + column.type + "' has no C++ type here");
}

constexpr char kHead[] = "// Generated by tlparse/src/store/row_types_main.cc from ";

std::string EnumHeader(const std::string& stem, const std::vector<const Table*>& tables) {
  std::string text = kHead + stem +
                     ".sql.\n#pragma once\n\n#include <cstdint>\n#include <string_view>\n\n"
                     "namespace tlparse {\n";
  for (const Table* table : tables) {
    const std::string name = CamelCase(table->name);
    text += "\n// Rows of " + table->name + ".\nenum class " + name + " : std::uint8_t {\n";
    for (const auto& [id, value] : table->names) {
      if (id < 0 || id > 255) Stop(table->name + ": ids are 0 to 255");
      text += "  k" + CamelCase(value) + " = " + std::to_string(id) + ",\n";
    }
    text += "};\nconstexpr std::string_view Name(" + name + " value) {\n  switch (value) {\n";
    for (const auto& [id, value] : table->names)
      text +=
          "    case " + name + "::k" + CamelCase(value) + ":\n      return \"" + value + "\";\n";
    text += "  }\n  return {};\n}\n";
  }
  return text + "\n}  // namespace tlparse\n";
}

std::string RowStruct(const Table& table) {
  std::string text = "\nstruct " + RowName(table.name) + " {\n";
  std::string columns, visits;
  for (const Column& column : table.columns) {
    const std::string member = Member(column.name);
    text += "  " + CppType(table, column) + " " + member +
            (column.may_be_null ? " = std::nullopt;\n" : ";\n");
    columns += (columns.empty() ? "" : ", ") + ("\"" + column.name + "\"");
    visits += "    visit(" + member + ");\n";
  }
  return text + "\n  static constexpr std::string_view kTable = \"" + table.name +
         "\";\n  static constexpr std::array<std::string_view, " +
         std::to_string(table.columns.size()) + "> kColumns = {" + columns +
         "};\n  template <typename Visit>\n  void ForEachValue(Visit&& visit) const {\n" + visits +
         "  }\n};\n";
}

std::string RowHeader(const std::string& stem, const std::vector<const Table*>& tables,
                      const std::map<std::string, std::string>& stem_of_table) {
  std::string text = kHead + stem +
                     ".sql.\n#pragma once\n\n#include <array>\n#include <cstdint>\n"
                     "#include <optional>\n#include <string_view>\n\n";
  std::set<std::string> enums;
  for (const Table* table : tables)
    for (const Column& column : table->columns)
      if (!column.lookup_table.empty()) enums.insert(stem_of_table.at(column.lookup_table));
  for (const std::string& header : enums) text += "#include \"enums/" + header + ".h\"\n";
  text += "#include \"store/row.h\"\n\nnamespace tlparse {\n";
  for (const Table* table : tables) text += RowStruct(*table);
  return text + "\n}  // namespace tlparse\n";
}

void WriteIfChanged(const std::filesystem::path& path, const std::string& text) {
  std::ifstream in(path, std::ios::binary);
  const std::string old{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.is_open() && old == text) return;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) Stop(path.string() + ": cannot be written");
}

void WriteHeaders(const std::filesystem::path& directory, const std::vector<Table>& tables) {
  std::map<std::string, std::vector<const Table*>> by_stem;
  std::map<std::string, std::string> stem_of_table, table_of_row;
  for (const Table& table : tables) {
    by_stem[table.script_stem].push_back(&table);
    stem_of_table[table.name] = table.script_stem;
    const auto [entry, is_new] = table_of_row.emplace(RowName(table.name), table.name);
    if (!is_new) Stop(table.name + " and " + entry->second + ": both would be " + entry->first);
  }
  for (const auto& [stem, own] : by_stem) {
    WriteIfChanged(directory / "rows" / (stem + ".h"), RowHeader(stem, own, stem_of_table));
    std::vector<const Table*> lookup_tables;
    for (const Table* table : own)
      if (!table->names.empty()) lookup_tables.push_back(table);
    if (!lookup_tables.empty())
      WriteIfChanged(directory / "enums" / (stem + ".h"), EnumHeader(stem, lookup_tables));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: tlparse_row_types DIRECTORY SCRIPT.sql ...\n");
    return 2;
  }
  try {
    Schema schema;
    for (int i = 2; i < argc; ++i) schema.Run(argv[i]);
    WriteHeaders(argv[1], schema.tables());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tlparse_row_types: %s\n", error.what());
    return 1;
  }
  return 0;
}
