// Ingests structured trace logs into a database: the main job.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/step_times.h"
#include "inputs/find_inputs.h"
#include "inputs/reader.h"
#include "log/find_logs.h"
#include "store/database.h"

namespace tlparse {

struct ImportProgress {
  std::int64_t bytes_done = 0;   // of the files on disk, compressed
  std::int64_t bytes_total = 0;  // -1: unknown (standard input)
  std::int64_t records = 0;
  std::string_view path;  // being read
};

struct ImportOptions {
  std::string database_path;
  // Row of `run`. One call makes one run; a run of that name that exists already gets the logs that
  // are new or have changed.
  std::string run_name;
  // False: `database_path` is replaced when everything has succeeded. True: rows are added to it
  // (it is created if it does not exist), in one transaction.
  bool append = false;
  // The logs were followed while they grew (Follower): the rows that only the end of a load makes
  // are made even if no log has changed.
  bool ends_watch = false;
  // Profiles, recorder dumps and the like, read after the logs; they become rows of the same run.
  std::vector<RuntimeInput> runtime_inputs;
  RuntimeOptions runtime;
  // Called from time to time, by one thread at a time, not always the caller's.
  std::function<void(const ImportProgress&)> on_progress;
  // For `append`: as Database::WaitForLocks.
  Database::LockWait wait_for_locks;
  // Maximum number of threads, including the caller's; 0: one for each core. The rows do not depend
  // on it.
  int threads = 0;
  // Called when all rows of the run are there, before they are committed: writes what later stages
  // derive from them. May be empty.
  std::function<Result<void>(Database&, std::int64_t run_id)> derive;
  // CPU time by step is added to it; may be null.
  StepTimes* times = nullptr;
  // Gets the connection of a new database that is small, which Database::ReadOn makes one that reads: a
  // second one takes a tenth of the time of a small load. Else it stays empty. May be null.
  std::optional<Database>* reader = nullptr;
};

struct ImportSummary {
  std::int64_t run_id = 0;
  std::int64_t log_count = 0;        // read now
  std::int64_t unchanged_count = 0;  // in the run already, with the same bytes
  std::int64_t profile_count = 0;    // of options.runtime_inputs, read now
  std::int64_t record_count = 0;
  std::int64_t size_bytes = 0;   // decompressed
  std::int64_t error_count = 0;  // import_log rows of this run
  std::int64_t warning_count = 0;
  std::int64_t info_count = 0;
};

// Reads `logs` in order. `skipped` become import_log rows. The database is complete or unchanged: a
// failure or a kill leaves either the old one or none. Damage in a log is a row of import_log,
// never a failure. kNotFound, kIo: a log cannot be opened. kDatabase: writing failed
// (disk full).
Result<ImportSummary> ImportLogs(const std::vector<FoundLog>& logs,
                                 const std::vector<SkippedFile>& skipped,
                                 const ImportOptions& options);

}  // namespace tlparse
