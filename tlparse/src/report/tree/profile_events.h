// Writes the measurements of profiles as events of a Chrome trace, with the time base of the
// compiler's events.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

using AddEvent = std::function<Result<void>(std::string_view)>;

// Calls add(event) with one JSON object for each graph call, region, op, annotation, CPU kernel, and
// kernel and copy on a device of a profile of the process. `pid`: of the events of its CPU threads;
// each device is a separate process with a name.
Result<void> AddProfileEvents(Database& database, std::int64_t process_id, std::int64_t pid,
                              const AddEvent& add);

// The same of the profiles of a run that measured no process of a log. Their pid is the rank that
// the file names if `by_rank`, else the pid that it names, else a number below those of processes.
Result<void> AddEventsWithoutLog(Database& database, std::int64_t run_id, bool by_rank,
                                 const AddEvent& add);

}  // namespace tlparse
