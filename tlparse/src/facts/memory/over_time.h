// What is alive over the time of a recording, at a bounded number of moments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "enums/memory.h"
#include "store/database.h"

namespace tlparse {

inline constexpr std::size_t kMemoryCategories = 7;  // values of MemoryCategory

struct MemoryHolder {
  std::int64_t site_id = 0;  // 0: none
  bool is_before = false;    // allocated before the recording began
  std::int64_t size_bytes = 0, allocations = 0;
};

struct MemoryPoint {
  std::int64_t ordinal = 0;  // the event after which it is; -1: before the first
  std::optional<std::int64_t> time_ns;
  std::int64_t size_bytes = 0;
  std::array<std::int64_t, kMemoryCategories> categories = {};
  std::vector<MemoryHolder> holders;  // the largest, most bytes first
};

// The recording is divided into equal stretches of time (of events, where they have no times), and the
// moment of each at which the most was alive is a point: so its peak is one. Further points are
// before the first event, after the last one and where an allocation failed.
Result<std::vector<MemoryPoint>> ReadMemoryOverTime(Database& database, std::int64_t snapshot_id);

}  // namespace tlparse
