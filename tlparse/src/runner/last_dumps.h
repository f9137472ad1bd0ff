// Dumps of flight recorders that processes with our hook wrote when they ended.
#pragma once

#include <vector>

#include "runner/process_watch.h"
#include "runner/recorded_variables.h"
#include "runner/run_file.h"

namespace tlparse {

// Whether the end of no rank says which of them was missing where, or did not match: each ended by an exception
// that says that it waited for others too long or found them gone, or was aborted as calls did not match, by one of
// `aborts`. The groups' dumps may show it.
bool SayNoCause(const std::vector<WatchedProcess>& processes, const std::vector<AbortText>& aborts);

// Moves those of the ranks that ran last, side by side, into `recorded`, in place of earlier ones: a
// command may run several programs, or one of them again.
void TakeLastDumps(const RecordPlaces& places, const std::vector<WatchedProcess>& processes);

}  // namespace tlparse
