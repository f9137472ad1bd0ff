// The output of `tlparse diff`.
#pragma once

#include "base/json_writer.h"
#include "facts/diff/diff_runs.h"

namespace tlparse {

void PrintDiff(const RunComparison& answer, bool all);
JsonWriter DiffJson(const RunComparison& answer);

}  // namespace tlparse
