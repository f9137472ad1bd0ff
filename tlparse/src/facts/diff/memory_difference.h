// What holds more memory at the peak of one side than at that of the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/memory/memory.h"

namespace tlparse {

struct MemorySide {
  Database* database = nullptr;
  std::int64_t run_id = 0;
  std::optional<std::int64_t> rank;  // nothing: any
};

// A row of `tlparse memory`, on both sides. A line that has moved is the same one if its function
// has no other that is on one side only.
struct MemoryChange {
  MemoryRow row;                       // as in b, or in a where b has none; without bytes
  std::optional<std::int64_t> a_line;  // where it is another one than in b
  std::int64_t a_bytes = 0, b_bytes = 0;
};

// One device, at the peak of each side: of those that both sides have, the one whose peak grew most.
struct MemoryDifference {
  MemoryDevice a, b;                  // without rows
  std::size_t device_count = 0;       // that both sides have
  std::vector<MemoryChange> changes;  // sum to the peaks; the greatest increase first
};

// Devices are those of one kind of recording, number and rank; where each side names a rank, or has
// one device alone, of any rank. Of several recordings of a device the one with the highest peak
// counts. Nothing: the sides have none in common.
Result<std::optional<MemoryDifference>> CompareMemory(const MemorySide& a, const MemorySide& b);

}  // namespace tlparse
