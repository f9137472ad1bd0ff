// A file of SQLite whose pages a thread of its own hands to the system: of a bulk load, that takes
// as long as all that SQLite does, and the system takes the pages of one file one at a time.
#pragma once

#include "base/result.h"
#include "base/stage_times.h"
#include "store/database.h"

namespace tlparse {

// From here on pages of `database` (opened with kBulkLoad) are written by another thread, a few MB
// later. Reading, committing and closing wait for them; an error of the system becomes that of a
// later statement, the COMMIT at the latest. Without a thread to be had all stays as it was.
// `times` may be null, and outlives the database.
Result<void> WriteBehind(Database& database, StageTimes* times);

// The name of the file system (sqlite3_vfs) in which such a database is opened.
const char* WriteBehindVfs();

}  // namespace tlparse
