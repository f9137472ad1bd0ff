// The rows of import_log; log/import_code.h lists the codes.
#pragma once

#include <cstdint>
#include <string_view>

#include "log/import_code.h"
#include "store/row_batch.h"

namespace tlparse {

// Writes the problems of one run.
class ImportLog {
 public:
  explicit ImportLog(TableSet& tables);
  void Begin(std::int64_t run_id, std::int64_t next_id) {
    run_id_ = run_id;
    next_id_ = next_id;
  }
  // `text` is what no record keeps; empty: NULL. It is copied.
  void Add(RowBatch& rows, std::optional<std::int64_t> log_file_id, const ImportPlace& place,
           ImportCode code, std::string_view message, std::string_view text = {},
           std::int64_t line_count = 1);

 private:
  std::int64_t run_id_ = 0;
  std::int64_t next_id_ = 1;
};

}  // namespace tlparse
