// What of a device's memory is alive at the end of each step of the program, and what grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// A step of the profiler (ProfilerStep#n), of which the recording holds the end.
struct MemoryStep {
  std::int64_t step = 0;
  std::int64_t end_ns = 0;
  std::int64_t alive_bytes = 0;  // at its end
};

struct BytesAlive {
  std::int64_t size_bytes = 0, allocations = 0;
};

struct StepsOfMemory {
  std::vector<MemoryStep> steps;  // by time
  // In how many of the last steps something must have grown to be said to grow; 0: there are too few.
  std::size_t last = 0;
  // By site (0: none): at the end of the step before these, and of each of them.
  std::map<std::int64_t, std::vector<BytesAlive>> sites;
};

// A program grows while it warms up: an optimizer makes its state, caches fill. So the first steps
// of a recording are not looked at, and growth is what the last steps have in common.
inline constexpr std::size_t kWarmUpSteps = 2, kMostGrowingSteps = 5, kFewestGrowingSteps = 3;

// Whether bytes and allocations grew from each step to the next: what was allocated stayed, and more
// came. A block that is replaced by a larger one is none of it.
bool IsGrowing(const std::vector<BytesAlive>& alive);

Result<StepsOfMemory> ReadMemorySteps(Database& database, std::int64_t snapshot_id);

}  // namespace tlparse
