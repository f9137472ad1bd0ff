// An empty database of this program in a folder that goes away, and what a query says of it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "store/batch_table.h"
#include "store/database.h"
#include "store/schema.h"
#include "tests/base/temp_directory.h"

namespace tlparse {

inline Database OpenOrThrow(const std::string& path, Database::Mode mode) {
  Result<Database> database = Database::Open(path, mode);
  if (!database) throw std::runtime_error(database.error().message);
  return std::move(*database);
}

inline Database CreateOrThrow(const std::string& path) {
  Result<Database> database = CreateDatabase(path);
  if (!database) throw std::runtime_error(database.error().message);
  return std::move(*database);
}

struct ScratchDatabase {
  void Insert(const TableSet& tables, const RowBatch& rows) {
    auto writer = BatchWriter::Make(database, tables);
    if (!writer) throw std::runtime_error(writer.error().message);
    if (Result<void> inserted = (*writer)->Insert(rows); !inserted)
      throw std::runtime_error(inserted.error().message);
  }
  // Rows as text: columns joined by '|', NULL is "NULL".
  std::vector<std::string> Rows(std::string_view sql) {
    Result<Statement> statement = database.Prepare(sql);
    if (!statement) throw std::runtime_error(statement.error().message);
    std::vector<std::string> rows;
    while (*statement->Step()) {
      std::string row;
      for (int column = 0; column < statement->column_count(); ++column) {
        if (column > 0) row += '|';
        row += statement->OptionalText(column).value_or("NULL");
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

  TempDirectory directory;
  std::string path = directory.path() + "/trace.db";
  Database database = CreateOrThrow(path);
};

using Lines = std::vector<std::string>;

}  // namespace tlparse
