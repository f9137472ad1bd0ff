// The tables `role` and `process_end`: the roles of a run's ranks and the ends of its processes, as
// findings have them. See roles.h and ends.h.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Of all launches of the run, at the end of a load; what was written before is replaced.
Result<void> WriteJobFacts(Database& database, std::int64_t run_id);
// The same while the job is watched: how its processes end is not known, so there are no ends.
Result<void> WriteLiveJobFacts(Database& database, std::int64_t run_id);

}  // namespace tlparse
