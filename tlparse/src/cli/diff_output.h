// The output of `tlparse diff`.
#pragma once

#include "analysis/diff/diff_runs.h"
#include "base/json_writer.h"

namespace tlparse {

void PrintDiff(const RunComparison& answer, bool all);
JsonWriter DiffJson(const RunComparison& answer);

}  // namespace tlparse
