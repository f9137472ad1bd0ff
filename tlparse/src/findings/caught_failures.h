// Compiles that failed in programs that went on. Internal to findings.
#pragma once

#include <cstdint>
#include <vector>

#include "findings/context.h"

namespace tlparse {

// The program has caught the exception of a compile if its process ended with exit code 0; where that
// is not known, if its log has a later compile. What all ranks handle alike is a note.
// `ids`: of compiles of one function that failed with one cause.
Result<void> SaySurvived(const FindingContext& context, const std::vector<std::int64_t>& ids,
                         Finding& finding);

}  // namespace tlparse
