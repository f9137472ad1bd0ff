// Runs of a job at which a time changed for good.
#pragma once

#include <cstddef>
#include <vector>

namespace tlparse {

struct Jump {
  std::size_t at = 0;  // the first run after the change
  // Runs that may be the first one as well, as far as the noise allows to tell: from, to.
  std::size_t first = 0, last = 0;
  // Medians of as many runs on either side: seven, more where the noise needs them, or as many as
  // there are up to the next jump.
  double before = 0, after = 0;
  std::size_t runs_before = 0, runs_after = 0;
};

// Changes by a tenth and more that stand out from the noise between runs; in order. `times`, of
// runs that followed each other, are positive. Single slow or fast runs are none, unless they are
// the first or the last and unlike all others. Drifts, rhythms and runs of two kinds (warm and cold
// caches) are none.
std::vector<Jump> FindJumps(const std::vector<double>& times);

}  // namespace tlparse
