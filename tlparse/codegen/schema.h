// The schema as SQLite understands it, and what the generators of C++ share: names and types of
// members. The generators run at build time; their errors are exceptions that main() prints.
#pragma once

#include <sqlite3.h>

#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace codegen {

[[noreturn]] void Stop(const std::string& message);

struct Column {
  std::string name;
  std::string type;  // as declared
  bool may_be_null = true;
  std::string lookup_table;  // referenced; "": none
};

// A lookup table has the columns `id INTEGER PRIMARY KEY, name TEXT NOT NULL` and perhaps facts of
// each value (`is_miss INTEGER NOT NULL`); its script inserts its rows.
struct Table {
  std::string name;
  std::string script_stem;
  std::vector<Column> columns;
  // Of a lookup table: its rows, ascending, as texts. Elsewhere empty.
  std::vector<std::vector<std::string>> values;
};

// An empty database in memory in which the scripts of schemas/sql are executed.
class Schema {
 public:
  Schema();
  ~Schema();
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

  // Executes a script; the tables that it makes are added to tables().
  void Run(const std::string& path);
  const std::vector<Table>& tables() const { return tables_; }
  // nullptr: there is none.
  const Table* Find(std::string_view name) const;
  bool IsView(const std::string& name) const { return views_.contains(name); }
  // With the text of each.
  const std::map<std::string, std::string>& views() const { return views_; }
  sqlite3* database() const { return database_; }

 private:
  using Rows = std::vector<std::vector<std::string>>;
  Rows Query(const std::string& sql);
  Table Describe(const std::string& name, const std::string& stem);

  sqlite3* database_ = nullptr;
  std::vector<Table> tables_;
  std::set<std::string> lookup_tables_;
  std::map<std::string, std::string> views_;
};

// cache_event_row → CacheEventRow.
std::string CamelCase(std::string_view name);
// The column's name, or where that is a word of C++, with an underscore behind it.
std::string Member(const std::string& column);

std::string ReadFile(const std::string& path);
// A file whose text would not change is not touched, so that what depends on it is not built again.
void WriteIfChanged(const std::filesystem::path& path, const std::string& text);

}  // namespace codegen
