#include "schema.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace codegen {

void Stop(const std::string& message) { throw std::runtime_error(message); }

Schema::Schema() {
  if (sqlite3_open(":memory:", &database_) != SQLITE_OK) Stop("cannot open a database in memory");
}

Schema::~Schema() { sqlite3_close(database_); }

const Table* Schema::Find(std::string_view name) const {
  for (const Table& table : tables_)
    if (table.name == name) return &table;
  return nullptr;
}

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
  const std::string sql = ReadFile(path);
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
    if (columns.size() >= 2 && std::equal(wanted.begin(), wanted.end(), columns.begin()) &&
        Query("SELECT count(*) FROM \"" + name + "\"")[0][0] != "0")
      lookup_tables_.insert(name);
  }
  for (const auto& row : Query("SELECT name, sql FROM sqlite_schema WHERE type = 'view'"))
    views_[row[0]] = row[1];
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
  if (lookup_tables_.contains(name))
    table.values = Query("SELECT * FROM \"" + name + "\" ORDER BY id");
  return table;
}

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

std::string Member(const std::string& column) {
  static const std::set<std::string> kReserved = {
      "and",    "auto",   "bool",     "case",     "char",    "class",  "const", "default", "do",
      "double", "enum",   "explicit", "export",   "extern",  "false",  "float", "int",     "long",
      "new",    "not",    "or",       "operator", "private", "public", "short", "signed",  "static",
      "struct", "switch", "template", "this",     "true",    "union",  "using", "void",    "while"};
  return kReserved.contains(column) ? column + "_" : column;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) Stop(path + ": cannot be read");
  return text;
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

}  // namespace codegen
