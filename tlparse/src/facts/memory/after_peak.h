// What was freed right after the peak: had it been freed before, the peak would be lower.
#pragma once

#include <cstdint>
#include <map>

#include "base/result.h"
#include "facts/memory/steps.h"
#include "store/database.h"

namespace tlparse {

// Blocks that lived before the allocation that made the peak, and were freed before the next one.
struct FreedAfterPeak {
  std::map<std::int64_t, BytesAlive> sites;  // by site; 0: none
  std::int64_t size_bytes = 0;
  // The peak that is left if these had been freed before the allocation that made it.
  std::int64_t lower_peak_bytes = 0;
};

// `peak_ordinal`: the event after which `peak_bytes` were alive.
Result<FreedAfterPeak> ReadFreedAfterPeak(Database& database, std::int64_t snapshot_id,
                                          std::int64_t peak_ordinal, std::int64_t peak_bytes);

}  // namespace tlparse
