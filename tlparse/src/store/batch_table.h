// Inserts a RowBatch with one statement per table: `INSERT INTO t(columns) SELECT … FROM batch_t`,
// where batch_t is a virtual table over the batch's cells. Cheaper than binding and stepping every
// row (SQLite runs one program over all of them, and text is not copied). Rows whose ids continue
// from the last one are inserted without ids: SQLite then assigns the same ids and need not search
// for their place.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/row_batch.h"

namespace tlparse {

struct BatchSource;

// A table whose rows are updated where their primary key is there already.
struct ReplacedTable {
  std::string_view name;
  // Columns that always have the same value in a row, as those of its indexes: they are not set
  // again, since SQLite writes an index anew even if the value stays the same.
  std::array<std::string_view, 2> constant_columns = {};
};

class BatchWriter {
 public:
  // `database` has all tables of `tables`, each with the columns named there (kInternal
  // otherwise); it may have more. Both must outlive the writer.
  static Result<std::unique_ptr<BatchWriter>> Make(Database& database, const TableSet& tables);
  // The same for rows that are not in order of their ids and may be removed meanwhile: ids are
  // always given. A row for a table of `replaced` updates the row that has its primary key already,
  // except for columns where it is NULL.
  static Result<std::unique_ptr<BatchWriter>> MakeReplacing(
      Database& database, const TableSet& tables, std::span<const ReplacedTable> replaced);
  ~BatchWriter();
  BatchWriter(const BatchWriter&) = delete;
  BatchWriter& operator=(const BatchWriter&) = delete;

  // Inserts all rows. kDatabase with the table's name if SQLite refuses one (disk full, wrong
  // type).
  Result<void> Insert(const RowBatch& batch);

 private:
  struct Target {
    std::unique_ptr<BatchSource> source;
    Statement insert;
    std::optional<Statement> append;  // without ids; only where the first column is the rowid
    std::int64_t last_id = 0;         // the greatest this writer has inserted; 0: none yet
  };
  BatchWriter(Database& database, const TableSet& tables);
  static Result<std::unique_ptr<BatchWriter>> Make(Database& database, const TableSet& tables,
                                                   std::span<const ReplacedTable> replaced,
                                                   bool appends);
  Result<void> AddTarget(const TableSet::Table& table, const std::string& conflict, bool appends);
  Result<void> Insert(Target& target, const std::vector<Cell>& cells);

  Database& database_;
  const TableSet& tables_;
  std::vector<Target> targets_;
};

}  // namespace tlparse
