// Files with Python stacks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runner/process_watch.h"
#include "runner/recorded_variables.h"

namespace tlparse {

// "rank 2 (pid 5088)"; "pid 5088".
std::string Whose(const WatchedProcess& process);

// The file from a byte on; empty: nothing is there.
std::string TextFrom(const std::string& path, std::int64_t from);
void AppendText(const std::string& path, std::string_view text);

// After the command: where its processes were when a signal came that ended them, by what they wrote
// into the folder of ends. The stacks are added to the file of stacks; the folder is removed.
void TakeLastStacks(const RecordPlaces& places, std::vector<WatchedProcess>& processes);

}  // namespace tlparse
