// What the text of NCCL's watchdog tells: which collective timed out, and who had not enqueued it.
// Internal to findings.
#pragma once

#include "base/result.h"
#include "findings/context.h"

namespace tlparse {

// After FindIssuedCollectives: what dumps show of the same ranks says more.
Result<void> FindInWatchdog(FindingContext& context);

}  // namespace tlparse
