// Which times of a profile are kept: so that no sum of a base, a time and a duration, nor of all
// durations of a file, exceeds 64 bits.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace tlparse {

// From 1896 to 2043, and no longer than three days.
inline bool IsTimeInRange(std::int64_t start_ns, std::int64_t duration_ns) {
  constexpr std::int64_t kLatest = std::int64_t{1} << 61;
  constexpr std::int64_t kLongest = std::int64_t{1} << 48;
  return start_ns <= kLatest && start_ns >= -kLatest && duration_ns >= 0 && duration_ns <= kLongest;
}

// Behind the number of events that were left out: ", 12.500 us in all", so that a total of what was
// kept is not taken for one of all. Empty for no time.
inline std::string TimeInAll(std::int64_t duration_ns) {
  if (duration_ns <= 0) return {};
  return fmt::format(", {}.{:03} us in all", duration_ns / 1000, duration_ns % 1000);
}

// The durations of one file.
class DurationSum {
 public:
  // False: with it the sum would exceed nine years, which no measured process reaches.
  bool Add(std::int64_t duration_ns) {
    constexpr std::int64_t kMost = std::int64_t{1} << 58;
    if (duration_ns > kMost - sum_ns_) return false;
    sum_ns_ += duration_ns;
    return true;
  }

 private:
  std::int64_t sum_ns_ = 0;
};

}  // namespace tlparse
