// The measurements of profiles in chromium_events.json, with the time base of the compiler's events.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "report/timeline/tracks.h"
#include "store/database.h"

namespace tlparse {

// The slices of the profiles of the process. `pid`: its number in the file; each device is a separate
// process with a name.
Result<void> AddProfileEvents(Database& database, std::int64_t process_id, std::int64_t pid,
                              TimelineTracks& tracks);

// The same of the profiles of a run that measured no process of a log. Their pid is the rank that
// the file names if `by_rank`, else the pid that it names, else a number above those of
// processes.
Result<void> AddEventsWithoutLog(Database& database, std::int64_t run_id, bool by_rank,
                                 TimelineTracks& tracks);

}  // namespace tlparse
