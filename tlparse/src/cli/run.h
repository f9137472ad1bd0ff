// Starts a command with everything recorded and follows it: the work of `tlparse run`.
#pragma once

#include "base/result.h"
#include "cli/run_options.h"

namespace tlparse {

// Returns the command's exit code, 126 or 127 if it cannot be started (which it has said). Our
// standard input and output are the command's, and nowhere when it has returned.
Result<int> RecordCommand(const RunOptions& options);

}  // namespace tlparse
