// Dumps of flight recorders that processes with our hook wrote when they ended.
#pragma once

#include <vector>

#include "runner/process_watch.h"
#include "runner/recorded_variables.h"

namespace tlparse {

// Whether each rank ended by an exception that says that it waited for others too long, or found them gone: none
// says which of them was missing where. The groups' dumps do.
bool HaveOnlyWaited(const std::vector<WatchedProcess>& processes);

// Moves those of the ranks that ran last, side by side, into `recorded`, in place of earlier ones: a
// command may run several programs, or one of them again.
void TakeLastDumps(const RecordPlaces& places, const std::vector<WatchedProcess>& processes);

}  // namespace tlparse
