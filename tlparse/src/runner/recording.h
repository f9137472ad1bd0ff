// The directory of a run, made before the command is started.
#pragma once

#include <string>

#include "base/result.h"
#include "runner/recorded_variables.h"

namespace tlparse {

// `output`: an output directory that exists. Makes in it: `recorded` (logs, dumps, run.json), `ask`
// (pipes) and, unless `has_hook` is false, `hook` (sitecustomize.py and what it loads). Without `ask` and its pipes the
// places have none: PyTorch ends a program whose pipe cannot be made.
Result<RecordPlaces> MakeRecordPlaces(const std::string& output, bool has_hook);

// Whether pipes can be made in the folder: some file systems have none.
bool CanHoldPipes(const std::string& folder);

}  // namespace tlparse
