// What a kernel of a GPU printed whose assertion failed. Internal to findings.
#pragma once

#include "base/result.h"
#include "facts/job/exits.h"
#include "findings/context.h"

namespace tlparse {

// Says of an exception that tells of such an assertion which one it was, if the inputs have its text.
Result<void> SayDeviceAssertion(const FindingContext& context, const FatalException& raised,
                                Finding& finding);

}  // namespace tlparse
