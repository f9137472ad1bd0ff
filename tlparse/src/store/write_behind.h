// Writes the pages of an SQLite file on a separate thread: in a bulk load the system calls take as
// long as everything else that SQLite does, and the system accepts the pages of a file one by one.
#pragma once

#include "base/result.h"
#include "base/step_times.h"
#include "store/database.h"

namespace tlparse {

// From here on pages of `database` (opened with kBulkLoad) are written by another thread, a few MB
// later. Reading, committing and closing wait for them; an error of the system becomes that of a
// later statement, the COMMIT at the latest. If no thread can be started nothing changes.
// `times` may be null, and outlives the database.
Result<void> WriteBehind(Database& database, StepTimes* times);

// The name of the file system (sqlite3_vfs) in which such a database is opened.
const char* WriteBehindVfs();

}  // namespace tlparse
