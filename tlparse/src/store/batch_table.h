// Inserts a RowBatch with one statement per table: `INSERT INTO t SELECT * FROM batch_t`, where
// batch_t is a virtual table over the batch's cells. Cheaper than binding and stepping every row
// (SQLite runs one program over all of them, and text is not copied).
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/row_batch.h"

namespace tlparse {

struct BatchSource;

class BatchWriter {
 public:
  // `database` has all tables of `tables`, each with the number of columns given there (kInternal
  // otherwise). Both must outlive the writer.
  static Result<std::unique_ptr<BatchWriter>> Make(Database& database, const TableSet& tables);
  ~BatchWriter();
  BatchWriter(const BatchWriter&) = delete;
  BatchWriter& operator=(const BatchWriter&) = delete;

  // Inserts all rows. kDatabase with the table's name if SQLite refuses one (disk full, wrong
  // type).
  Result<void> Insert(const RowBatch& batch);

 private:
  explicit BatchWriter(const TableSet& tables);

  const TableSet& tables_;
  std::vector<std::unique_ptr<BatchSource>> sources_;
  std::vector<Statement> inserts_;
};

}  // namespace tlparse
