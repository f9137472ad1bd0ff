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

// Calls add(event) with one JSON object for each graph call, region, op, annotation, CPU kernel, and
// kernel and copy on a device of a profile of the process. `pid`: of the events of its CPU threads;
// each device is a separate process with a name.
Result<void> AddProfileEvents(Database& database, std::int64_t process_id, std::int64_t pid,
                              const std::function<Result<void>(std::string_view)>& add);

}  // namespace tlparse
