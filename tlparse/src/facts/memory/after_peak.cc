#include "facts/memory/after_peak.h"

#include <algorithm>

#include "facts/memory/moments.h"
#include "queries/facts/memory/after_peak.h"

namespace tlparse {

Result<FreedAfterPeak> ReadFreedAfterPeak(Database& database, std::int64_t snapshot_id,
                                          std::int64_t peak_ordinal, std::int64_t peak_bytes) {
  FreedAfterPeak freed;
  ASSIGN_OR_RETURN(const FirstRow<NextAllocation> next,
                   First(Query<NextAllocation>(
                       database, {.snapshot_id = snapshot_id, .ordinal = peak_ordinal})));
  FOR_EACH_ROW(const LifeByOrdinal& life,
               Query<LifeByOrdinal>(database, {.snapshot_id = snapshot_id})) {
    const std::int64_t begin = life.alloc_ordinal.value_or(-1);
    const std::int64_t end = life.free_ordinal.value_or(next->event_count);
    if (begin >= peak_ordinal || end <= peak_ordinal || end >= next->ordinal) continue;
    BytesAlive& site = freed.sites[life.site_id];
    site.size_bytes += life.size_bytes;
    ++site.allocations;
    freed.size_bytes += life.size_bytes;
  }
  freed.lower_peak_bytes = peak_bytes - freed.size_bytes;
  RETURN_IF_ERROR(ForEachMoment(
      database, snapshot_id, next->event_count, [&](std::int64_t ordinal, std::int64_t bytes) {
        if (ordinal < peak_ordinal || ordinal >= next->ordinal)
          freed.lower_peak_bytes = std::max(freed.lower_peak_bytes, bytes);
      }));
  return freed;
}

}  // namespace tlparse
