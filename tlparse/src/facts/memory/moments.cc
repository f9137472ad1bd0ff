#include "facts/memory/moments.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "queries/facts/memory/after_peak.h"

namespace tlparse {

Result<void> ForEachMoment(
    Database& database, std::int64_t snapshot_id, std::int64_t event_count,
    const std::function<void(std::int64_t ordinal, std::int64_t bytes)>& take) {
  constexpr std::int64_t kMostAtOnce = std::int64_t{1} << 23;
  std::vector<std::int64_t> changes;
  std::int64_t bytes = 0;
  for (std::int64_t first = -1; first < event_count; first += kMostAtOnce) {
    const std::int64_t end = std::min(first + kMostAtOnce, event_count);
    changes.assign(static_cast<std::size_t>(end - first), 0);
    const auto add = [&](std::int64_t ordinal, std::int64_t change) {
      if (ordinal >= first && ordinal < end)
        changes[static_cast<std::size_t>(ordinal - first)] += change;
    };
    FOR_EACH_ROW(const LifeByOrdinal& life,
                 Query<LifeByOrdinal>(database, {.snapshot_id = snapshot_id})) {
      add(life.alloc_ordinal.value_or(-1), life.size_bytes);
      if (life.free_ordinal) add(*life.free_ordinal, -life.size_bytes);
    }
    for (std::int64_t ordinal = first; ordinal < end; ++ordinal)
      take(ordinal, bytes += changes[static_cast<std::size_t>(ordinal - first)]);
  }
  return {};
}

}  // namespace tlparse
