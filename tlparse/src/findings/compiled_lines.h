// An exception that came out of compiled code: its traceback ends in a graph or in generated code, and
// names of the program but the function that was compiled, or its first line. Internal to findings.
#pragma once

#include <cstdint>
#include <optional>

#include "facts/job/exits.h"
#include "findings/context.h"

namespace tlparse {

// Says of which line of the program the failed statement was made, and places the finding there, if it is
// one line. `process_id`: of `process`, that raised it; nothing: the one with its rank.
Result<void> SayCompiledLine(const FindingContext& context, const FatalException& raised,
                             std::optional<std::int64_t> process_id, Finding& finding);

}  // namespace tlparse
