// Compares the profiles of two runs of which at least one has no log.
#pragma once

#include <optional>

#include "facts/diff/measured_difference.h"

namespace tlparse {

// Kernels are matched by name and by the shapes of the op that enqueued them, ops by name and
// shapes: of those of one name and shapes the times are summed. kNotFound: a side has no profile.
Result<MeasuredDifference> CompareProfiles(const MeasuredSide& a, const MeasuredSide& b);

}  // namespace tlparse
