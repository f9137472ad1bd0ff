#include "facts/memory/steps.h"

#include <algorithm>

#include "queries/facts/memory/steps.h"

namespace tlparse {

bool IsGrowing(const std::vector<BytesAlive>& alive) {
  for (std::size_t i = 1; i < alive.size(); ++i) {
    if (alive[i].size_bytes <= alive[i - 1].size_bytes ||
        alive[i].allocations <= alive[i - 1].allocations)
      return false;
  }
  return true;
}

Result<StepsOfMemory> ReadMemorySteps(Database& database, std::int64_t snapshot_id) {
  StepsOfMemory result;
  FOR_EACH_ROW(const StepOfMemory& step,
               Query<StepOfMemory>(database, {.snapshot_id = snapshot_id})) {
    result.steps.push_back({.step = step.step, .end_ns = step.end_ns});
  }
  const std::vector<MemoryStep>& steps = result.steps;
  if (steps.empty()) return result;
  // Of the first step that ends at or after the time.
  const auto index_of = [&](std::int64_t time_ns) {
    const auto found = std::lower_bound(
        steps.begin(), steps.end(), time_ns,
        [](const MemoryStep& step, std::int64_t time) { return step.end_ns < time; });
    return static_cast<std::size_t>(found - steps.begin());
  };
  if (steps.size() >= kWarmUpSteps + kFewestGrowingSteps)
    result.last = std::min(kMostGrowingSteps, steps.size() - kWarmUpSteps);
  const std::size_t first = steps.size() - result.last - 1;
  std::vector<std::int64_t> changes(steps.size() + 1);
  FOR_EACH_ROW(const LifeOfAllocation& life,
               Query<LifeOfAllocation>(database, {.snapshot_id = snapshot_id})) {
    const std::size_t begin = life.alloc_ns ? index_of(*life.alloc_ns) : 0;
    const std::size_t end = life.free_ns ? index_of(*life.free_ns) : steps.size();
    if (begin >= end) continue;
    changes[begin] += life.size_bytes;
    changes[end] -= life.size_bytes;
    if (result.last == 0 || end <= first) continue;
    std::vector<BytesAlive>& alive = result.sites[life.site_id];
    alive.resize(result.last + 1);
    for (std::size_t i = std::max(begin, first); i < end; ++i) {
      alive[i - first].size_bytes += life.size_bytes;
      ++alive[i - first].allocations;
    }
  }
  std::int64_t alive_bytes = 0;
  for (std::size_t i = 0; i < steps.size(); ++i)
    result.steps[i].alive_bytes = alive_bytes += changes[i];
  return result;
}

}  // namespace tlparse
