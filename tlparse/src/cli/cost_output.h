// Output of tlparse cost that the table and --json share.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "facts/cost/cost.h"

namespace tlparse {

// As --json names it, and as the table's heading says it.
struct TimeName {
  std::string_view name, heading;
};
TimeName NameOf(CostTime time);

// The lines on kernels and devices of one profile, above a table by `by`.
void PrintKernels(const CostProfile& profile, CostBy by);

// `by`: as the flag names it. The first `top` rows.
JsonWriter CostJson(const CostAnswer& answer, std::string_view by, std::size_t top);

}  // namespace tlparse
