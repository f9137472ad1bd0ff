// Launches: which processes of a run lived at the same time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// One log of one rank: the time between its first and its last record.
struct LogLife {
  std::int64_t log_file_id = 0;
  std::optional<std::int64_t> rank;      // nothing: a log without rank
  std::optional<std::int64_t> start_us;  // since the epoch; nothing: uncalibrated
  std::optional<std::int64_t> end_us;
};

// The 1-based launch of each life. A rank's life that begins after its earlier one ended is of a
// later launch; one that overlaps it is of the same. Ranks with as many lives as there are launches
// determine the time of each launch; other ranks and logs without rank are assigned by time.
// Clocks of several hosts may differ by less than the pause between two launches. A pure
// function.
std::vector<std::int64_t> AssignLaunches(const std::vector<LogLife>& lives);

// Fills table `launch` and process.launch_id of a run, from its rows of `process`; may be called
// again after processes were added or removed.
Result<void> WriteLaunches(Database& database, std::int64_t run_id);

}  // namespace tlparse
