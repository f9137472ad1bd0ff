// Joins collectives of profiles with entries of recorder dumps of the same process (key K8).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Sets peer_id of the collectives of a run's profiles to the entry that is the same collective: by
// group and sequence number where the profile holds them, else by time (the entry was made while
// the slice was open, and of several slices the innermost counts) and op. What the entry was joined
// with (graph, lines, reduction) is taken over. Call after JoinRecorders; every entry is used once.
Result<void> JoinCollectiveSlices(Database& database, std::int64_t run_id);

}  // namespace tlparse
