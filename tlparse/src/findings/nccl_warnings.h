// What NCCL warned of. Internal to findings.
#pragma once

#include "base/result.h"
#include "facts/job/exits.h"
#include "findings/context.h"

namespace tlparse {

// Adds to the finding of an exception which says that another process was gone, or did not come, what NCCL warned of in another.
Result<void> SayNcclWarning(const FindingContext& context, const FatalException& raised,
                            Finding& finding);

}  // namespace tlparse
