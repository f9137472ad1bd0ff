// The viewer's chunks `findings`, of the latest launch, and `findings/<launch>`: as in `tlparse
// findings`, and the part of `tlparse ranks` that the page of ranks shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "report/live_state.h"
#include "store/database.h"

namespace tlparse {

// JSON, schemas/json/viewer/findings.schema.json. A run without compiles has empty tables. Times
// count from `origin_us`. `launch`: its ordinal; nothing: the latest. `watched`: the run is of a job
// that is watched.
Result<std::string> FindingsChunk(Database& database, std::int64_t run_id, std::int64_t origin_us,
                                  std::optional<std::int64_t> launch,
                                  const std::optional<WatchedJob>& watched);

}  // namespace tlparse
