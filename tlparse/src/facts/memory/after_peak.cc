#include "facts/memory/after_peak.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "queries/facts/memory/after_peak.h"

namespace tlparse {

Result<FreedAfterPeak> ReadFreedAfterPeak(Database& database, std::int64_t snapshot_id,
                                          std::int64_t peak_ordinal, std::int64_t peak_bytes) {
  FreedAfterPeak freed;
  ASSIGN_OR_RETURN(const FirstRow<NextAllocation> next,
                   First(Query<NextAllocation>(
                       database, {.snapshot_id = snapshot_id, .ordinal = peak_ordinal})));
  // After each event; the first: before all.
  std::vector<std::int64_t> alive(static_cast<std::size_t>(next->event_count) + 2);
  const auto at = [](std::int64_t ordinal) { return static_cast<std::size_t>(ordinal + 1); };
  FOR_EACH_ROW(const LifeByOrdinal& life,
               Query<LifeByOrdinal>(database, {.snapshot_id = snapshot_id})) {
    const std::int64_t begin = life.alloc_ordinal.value_or(-1);
    const std::int64_t end = life.free_ordinal.value_or(next->event_count);
    alive[at(begin)] += life.size_bytes;
    alive[at(end)] -= life.size_bytes;
    if (begin >= peak_ordinal || end <= peak_ordinal || end >= next->ordinal) continue;
    BytesAlive& site = freed.sites[life.site_id];
    site.size_bytes += life.size_bytes;
    ++site.allocations;
    freed.size_bytes += life.size_bytes;
  }
  freed.lower_peak_bytes = peak_bytes - freed.size_bytes;
  std::int64_t now = 0;
  for (std::int64_t ordinal = -1; ordinal < next->event_count; ++ordinal) {
    now += alive[at(ordinal)];
    if (ordinal < peak_ordinal || ordinal >= next->ordinal)
      freed.lower_peak_bytes = std::max(freed.lower_peak_bytes, now);
  }
  return freed;
}

}  // namespace tlparse
