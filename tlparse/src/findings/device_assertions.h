// What a kernel of a GPU printed whose assertion failed. Internal to findings.
#pragma once

#include "base/result.h"
#include "facts/job/exits.h"
#include "findings/context.h"

namespace tlparse {

// Adds the text of the assertion to the finding of a "device-side assert" exception, if the inputs have it.
Result<void> SayDeviceAssertion(const FindingContext& context, const FatalException& raised,
                                Finding& finding);

}  // namespace tlparse
