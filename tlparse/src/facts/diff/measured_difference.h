// Compares the profiles of two sides: which Python lines and kernels take longer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "facts/cost/cost.h"
#include "store/database.h"

namespace tlparse {

enum class MeasuredKind : std::uint8_t { kLine, kKernel, kOp };

// A line, kernel or op that both sides measured, or one (a_calls or b_calls is then 0). Times are means:
// per step if both sides mark steps, else per call. If only one side has it and no steps are marked:
// all of its time.
struct MeasuredChange {
  MeasuredKind kind = MeasuredKind::kLine;
  std::string name;              // of a kernel, with its handle; of a line its code
  std::string a_name;            // kernels: if it has another name in a
  std::string file;              // lines
  std::int64_t line = 0;         // lines: of side b
  std::string label, direction;  // kernels: compile and graph of side b (of a if b has none)
  std::int64_t slot = 0;         // kernels: which graph of that direction in its compile
  std::string shapes;  // kernels: operations and shapes as the generated code has them; without
                       // logs, and of ops, the shapes that the profile recorded
  double a_us = 0, b_us = 0;
  std::int64_t a_calls = 0, b_calls = 0;
  bool has_other_code = false;  // kernels: the generated code of its graph differs
  bool has_symbols = false;     // kernels: sizes are symbols, so that those of the calls may differ
};

// What of one kind was compared.
struct MeasuredCoverage {
  std::int64_t count = 0;
  double a_us = 0, b_us = 0;  // its time, in the unit of the times of the side
};

// Times of a side are sums over its window; of one step where both sides mark steps.
struct MeasuredSideTimes {
  std::int64_t steps = 0;
  double window_us = 0, kernel_us = 0;
  double op_us = 0;  // of profile_difference.h
  // Of the kernels on devices: all, and those that replays of CUDA graphs ran, in so many replays.
  double device_us = 0, graph_us = 0, replays = 0;
};

struct MeasuredDifference {
  bool is_per_step = false;
  bool has_logs = true;  // false: of profile_difference.h
  MeasuredSideTimes a, b;
  MeasuredCoverage lines, kernels, ops;
  // Kernels of which the log does not say what they compute: they are not compared.
  std::int64_t unknown_a = 0, unknown_b = 0;
  MeasuredCoverage unknown;  // their times
  // C++ kernels of one side, where the profiles of the other have none at all: the profiler shows
  // them only with Python frames, or where the code was compiled to show them.
  std::int64_t unrecorded_a = 0, unrecorded_b = 0;
  MeasuredCoverage unrecorded;          // their times
  std::vector<MeasuredChange> changes;  // the greatest increase first
  // Kernels that compute what none of the other side does, and without logs ops of a name and shapes
  // that the other has not, the costliest first.
  std::vector<MeasuredChange> only_a, only_b;
  // Whether what was compared is enough of the time of both sides to say that nothing of it is
  // slower.
  bool IsFair() const;
};

struct MeasuredSide {
  Database* database = nullptr;
  std::int64_t run_id = 0;
  std::optional<std::int64_t> rank;       // nothing: a run of one log
  std::vector<std::int64_t> process_ids;  // profiles of these processes only; empty: all
};

// Adds the devices of a profile.
void AddDevices(const CostProfile& profile, MeasuredSideTimes& times);

// Sorts what was compared, and divides the times of the sides by their steps where times are of a step.
void FinishMeasured(MeasuredDifference& difference);

// Ids of compiles of a and b that are one compile.
using CompilePairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Lines are matched by file and code, so that they may have moved; kernels within a pair of compiles
// and the same graph of it, by what they compute (kernel_identity.h), equal ones by their order.
// Nothing if a side has no profile.
Result<std::optional<MeasuredDifference>> CompareMeasured(const MeasuredSide& a,
                                                          const MeasuredSide& b,
                                                          const CompilePairs& compiles);

}  // namespace tlparse
