// Windows of a profile that somebody asks for by a signal to this process: --profile=on-demand.
#pragma once

#include <string_view>
#include <vector>

#include "runner/process_watch.h"
#include "runner/recorded_variables.h"

namespace tlparse {

// The signal that asks: SIGPROF.
int DemandSignal();

// From now on that signal is kept until TakeDemand is called. The command gets it no more.
void ListenForDemands();
// Whether somebody has asked since the last call.
bool TakeDemand();

// Asks each living process with our hook for a window. A process that would not survive the signal
// does not get it. How many were asked.
int AskForProfiles(const RecordPlaces& places, const std::vector<WatchedProcess>& processes);

}  // namespace tlparse
