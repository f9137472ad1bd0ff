// What can be taken of a command that hangs, before anything is ended.
#pragma once

#include <string>
#include <vector>

#include "runner/process_watch.h"
#include "runner/recorded_variables.h"
#include "runner/run_file.h"

namespace tlparse {

// Asks each flight recorder for a dump and each Python process for its stacks, and waits some
// seconds for them. A process that would not survive the signal does not get it: py-spy reads its
// stacks, if it is installed. `why`: a sentence.
HangReport TakeHangDump(const RecordPlaces& places, ProcessWatch& watch, const std::string& why);

}  // namespace tlparse
