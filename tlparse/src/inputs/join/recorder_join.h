// Joins the entries of flight-recorder dumps with what their process compiled.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Rebuilds the collective_run_link rows of a run's recorder dumps. profile.process_id of the run
// and links of other profiles (K8 sets their peer_id) must be set before. Keys:
//
//   J1  a frame of the entry is the file and line of the process's generated code
//   J2  without frames: the entries follow, in order of time, the collectives of one graph (group,
//       op and shape of each), and of no other graph
//   K8  a profile's slice of a collective began less than 1 ms before the entry and was open then
//
// Entries that are in several dumps of a rank, or that FlightRecorderHook recorded as well as the
// backend, are one collective: all but one get its id as peer_id. That one is of the latest dump,
// of a pickle rather than JSON, of the backend rather than the hook.
Result<void> JoinRecorders(Database& database, std::int64_t run_id);

}  // namespace tlparse
