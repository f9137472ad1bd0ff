// Joins what several files of one process recorded of the same collective: the entry of a recorder
// dump, the slice of a profile, libtrace's record (keys K8 and J3).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Sets peer_id of slices and of libtrace's records to the entry of the same collective, of libtrace's
// records without an entry to the slice: by group and sequence number if both have them, else by op
// and time (the entry was made while the slice was open; of several slices the innermost counts).
// What the entry is joined with (graph, lines, reduction) is copied to the slice; an entry without
// frames gets the graph call of its slice. Call after JoinRecorders; every entry is used once by
// the files of one kind.
Result<void> JoinCollectiveSlices(Database& database, std::int64_t run_id);

}  // namespace tlparse
