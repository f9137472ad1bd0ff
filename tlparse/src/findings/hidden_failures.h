// Failures of threads and children in findings. Internal to findings.
#pragma once

#include "facts/job/hidden_failures.h"
#include "findings/context.h"

namespace tlparse {

// Where a thread or a child had failed for which `waiting`, a finding of an error, has waited: makes the
// former of the latter, its evidence. `exit`: how the process ended that waited; null: the job hung.
// Whether it did.
Result<bool> PutHiddenFirst(FindingContext& context, Finding& waiting, const ProcessExit* exit);

}  // namespace tlparse
