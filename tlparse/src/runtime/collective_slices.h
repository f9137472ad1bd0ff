// Joins collectives of profiles with entries of recorder dumps of the same process (key K8).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Sets peer_id of the collectives of a run's profiles to the entry of the same collective: by group
// and sequence number if the profile has them, else by op and time (the entry was made while the
// slice was open; of several slices the innermost counts). The joins of the entry (graph, lines,
// reduction) are copied. Call after JoinRecorders; every entry is used once.
Result<void> JoinCollectiveSlices(Database& database, std::int64_t run_id);

}  // namespace tlparse
