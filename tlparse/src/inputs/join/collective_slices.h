// Joins what several files of one process recorded of the same collective: the entry of a recorder
// dump, the slice of a profile, libtrace's record (keys K8 and J3).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Where a collective was recorded, the one that is preferred first.
enum class IssuedSource : std::uint8_t { kDump, kProfile, kLibtrace };

// For each collective that several files recorded, one row stands for it and is the peer_id of the others: that of the dump, else
// that of the profile.
//
//   recorder dump      entry                        peer_id NULL
//   profile            slice of the same call       peer_id = entry    K8
//   libtrace's log     record of the same call      peer_id = entry, or the slice where there is no dump
//
// Two rows are the same collective if group and sequence number are equal; where one lacks these, if the ops are equal and the entry
// was made while the slice was open (the innermost such slice). A row is the peer of at most one row of each other kind. The slice
// gets what the entry is joined with (graph, lines, reduction); an entry without frames gets the graph call of its slice (J3). Call
// after JoinRecorders.
Result<void> JoinCollectiveSlices(Database& database, std::int64_t run_id);

}  // namespace tlparse
