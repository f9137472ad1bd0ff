// The job behind the logs of a run, as far as its processes tell: which are children of others, and
// which lived at the same time. Written at the end of each load.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Fills table `launch` and, in `process`, launch_id, parent_process_id, child_kind and
// child_evidence. May be called again after processes were added, changed or removed.
Result<void> WriteJobModel(Database& database, std::int64_t run_id);

}  // namespace tlparse
