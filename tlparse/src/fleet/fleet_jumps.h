// Runs of a job at which a time changed for good.
#pragma once

#include <cstddef>
#include <vector>

namespace tlparse {

struct Jump {
  std::size_t at = 0;  // the first run after the change
  // Runs that may be the first one as well, as far as the noise allows to tell: from, to.
  std::size_t first = 0, last = 0;
  std::size_t begin = 0, end = 0;  // the runs from the jump before it to the one after it
  double before = 0, after = 0;    // medians of those on either side, at most kJumpWindow
};
inline constexpr std::size_t kJumpWindow = 7;

// Changes by a tenth and more that stand out from the noise between runs; in order. `times`, of
// runs that followed each other, are positive. Single slow or fast runs are none, unless they are the
// first or the last.
std::vector<Jump> FindJumps(const std::vector<double>& times);

}  // namespace tlparse
