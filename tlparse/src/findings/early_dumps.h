// Ranks whose recorder dump ends before a call that is the last of all the others. Internal to findings.
#pragma once

#include <string_view>

#include "base/result.h"
#include "findings/context.h"

namespace tlparse {

// The cause of the finding about ranks without a dump.
inline constexpr std::string_view kNoRecorderDump = "no recorder dump";

// Where no other finding says what is wrong. Such a dump was written when its process ended, or
// earlier than those of the others. The finding about ranks without a dump becomes its evidence.
void FindEarlyDumps(FindingContext& context);

}  // namespace tlparse
