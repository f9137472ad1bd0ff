// Failed compiles and restarts of a run, in record order.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "report/participant.h"

namespace tlparse {

class Database;

// One row of `failure`; strings are ids into `text_row` (0: none).
struct FailureRow {
  std::int64_t record_id = 0;
  std::int64_t process_id = 0;
  std::int64_t compile_id = 0;  // 0: none
  std::int64_t kind_id = 0;
  std::int64_t type_id = 0;
  std::int64_t reason_id = 0;
  std::int64_t user_file_id = 0;
  std::int64_t user_line = 0;
};

// All failures of the run, read once: the table has no index by record.
Result<std::vector<FailureRow>> ReadFailures(Database& database, std::int64_t run_id);

// Those of one participant.
std::vector<FailureRow> FailuresOf(const Participant& participant,
                                   const std::vector<FailureRow>& failures);

}  // namespace tlparse
