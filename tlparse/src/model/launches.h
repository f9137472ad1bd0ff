// Launches: which processes of a run lived at the same time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tlparse {

// One log of one rank: the time between its first and its last record.
struct LogLife {
  std::int64_t log_file_id = 0;
  std::optional<std::int64_t> rank;      // nothing: a log without rank
  std::optional<std::int64_t> start_us;  // since the epoch; nothing: uncalibrated
  std::optional<std::int64_t> end_us;
};

// The launch of each life, from 1. The rank with the most lives one after the other has one in each
// launch; lives of a rank that overlap are of one launch. Such ranks show when each launch was:
//
//   rank 0   ----------      ---------        launches 1, 2
//   rank 1     --------       --------        1, 2
//   rank 2                     -------        2: by its time
//   log              ----                     1: a log without rank, by its time
//
// A later launch begins in the middle of the pause before it, so clocks of hosts may differ by less
// than half of that pause. A pure function.
std::vector<std::int64_t> AssignLaunches(const std::vector<LogLife>& lives);

}  // namespace tlparse
