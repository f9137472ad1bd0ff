// Ranks whose recorder dump ends before a call that is the last of all the others. Internal to findings.
#pragma once

#include "base/result.h"
#include "findings/context.h"

namespace tlparse {

// Where no other finding says what is wrong. Such a dump was written when its process ended, or
// earlier than those of the others.
void FindEarlyDumps(FindingContext& context);

}  // namespace tlparse
