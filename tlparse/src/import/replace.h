// A run that is ingested again: logs that have not changed are left alone, the rows of those that
// have go first.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// True: the run holds a log with this file's bytes (whatever its path) and nothing is to do. False:
// it does not; the rows of an earlier state of the log under this path are gone. Reads the file
// once to compare it.
Result<bool> ReplaceChangedLog(Database& database, std::int64_t run_id, const std::string& path);

// Removes every row of the log under this path, if the run has one. Derived content that other logs
// share stays, and names one of their records.
Result<void> RemoveLog(Database& database, std::int64_t run_id, const std::string& path);
// The same, but payloads and derived content that nobody uses any more stay until RemoveOrphans.
Result<void> RemoveLogRows(Database& database, std::int64_t run_id, const std::string& path);
Result<void> RemoveOrphans(Database& database);

}  // namespace tlparse
