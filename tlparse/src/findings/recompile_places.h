// Lines of the user's code for recompiles. Internal to findings.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "findings/context.h"

namespace tlparse {

// The whole of a path that is cut, "…/modules/linear.py", if one file of the stacks ends so.
Result<void> CompletePath(FindingContext& context, FindingPlace& place);

// A function of a library has no line that the user can change: names the one that ran it, and says
// where there are several. `ids`: its compiles.
Result<void> SetUserCaller(FindingContext& context, const std::vector<std::int64_t>& ids,
                           Finding& finding);

}  // namespace tlparse
