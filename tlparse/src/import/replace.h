// Ingests a run again: logs that have not changed are skipped, the rows of those that have changed
// are removed first.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// True: the run has a log with this file's bytes under this path, or if it `may_be_renamed`, under
// any; nothing is to be done. False: it has not; the rows of an earlier state of the log under this
// path were removed. Reads the file once to compare it.
Result<bool> ReplaceChangedLog(Database& database, std::int64_t run_id, const std::string& path,
                               bool may_be_renamed);

// Removes every row of the log under this path, if the run has one. Derived content that other logs
// share stays, and names one of their records.
Result<void> RemoveLog(Database& database, std::int64_t run_id, const std::string& path);
// The same, but payloads and derived content that are not used any more stay until RemoveOrphans.
Result<void> RemoveLogRows(Database& database, std::int64_t run_id, const std::string& path);
Result<void> RemoveOrphans(Database& database);

}  // namespace tlparse
