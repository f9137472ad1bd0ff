// The smallest set of differences that makes a run bad, by halving (delta debugging).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"

namespace tlparse {

enum class BisectionState { kGood, kBad, kUnknown };

struct Bisection {
  std::vector<std::size_t> cause;  // of the differences, ascending
  std::size_t runs = 0;
  bool is_sure = false;      // a run with these alone was bad
  bool is_smallest = false;  // and it is known that without any one of them it would not be
};

// `test` makes a run with these of `count` differences, ascending, as the bad run has them, and the
// others as the good run has them. A run with all of them is taken to be bad, one with none good.
// Where one difference is the cause and no run is unknown, there are at most log2(count) rounded up
// and one more. `most_runs`: then it ends with what it has.
Result<Bisection> Bisect(
    std::size_t count, std::size_t most_runs,
    const std::function<Result<BisectionState>(const std::vector<std::size_t>&)>& test);

}  // namespace tlparse
