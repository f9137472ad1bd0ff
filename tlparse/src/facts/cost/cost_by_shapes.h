// Time of kernels and ops by name and shapes: what profiles of runs without logs have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "facts/cost/cost.h"

namespace tlparse {

struct ShapeCost {
  std::string name;
  std::string shapes;  // "Input Dims" of the op, or of the op that enqueued the kernel; empty: the
                       // profile has none
  std::int64_t calls = 0;
  double us = 0;                    // kernels: their runs; ops: on the CPU, without the ops inside
  std::optional<double> device_us;  // ops: device kernels that they enqueued
};

struct ShapeCosts {
  std::vector<CostProfile> profiles;
  std::vector<ShapeCost> kernels, ops;
};

// kNotFound: the run has no profile (of this rank). `options.by` is ignored.
Result<ShapeCosts> CostsByShapes(Database& database, const CostOptions& options);

}  // namespace tlparse
