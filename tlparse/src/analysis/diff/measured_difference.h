// Compares the profiles of two sides: which Python lines and kernels take longer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// A line or kernel that both sides measured. Times are means: of a step where both sides mark steps,
// else of a call.
struct MeasuredChange {
  bool is_kernel = false;
  std::string name;              // of a kernel, with its handle; of a line its code
  std::string file;              // lines
  std::int64_t line = 0;         // lines: of side b
  std::string label, direction;  // kernels: compile and graph of side b
  double a_us = 0, b_us = 0;
  std::int64_t a_calls = 0, b_calls = 0;
  bool has_other_code = false;  // kernels: the generated code of its graph differs
};

struct MeasuredDifference {
  bool is_per_step = false;
  std::vector<MeasuredChange> changes;  // the greatest increase first
};

struct MeasuredSide {
  Database* database = nullptr;
  std::int64_t run_id = 0;
  std::optional<std::int64_t> rank;  // nothing: a run of one log
};

// Lines are matched by file and code, so that they may have moved; kernels by compile id, direction,
// name and handle. Nothing if a side has no profile.
Result<std::optional<MeasuredDifference>> CompareMeasured(const MeasuredSide& a,
                                                          const MeasuredSide& b);

}  // namespace tlparse
