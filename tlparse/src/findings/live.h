// Findings of a job that is watched while it runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "facts/job/status.h"
#include "findings/findings.h"

namespace tlparse {

struct LiveLog {
  std::int64_t quiet_us = 0;  // how long it has not grown
  bool has_grown = false;     // while it was watched
  bool is_removed = false;    // the file is not there any more
};

struct LiveJob {
  std::int64_t now_us = 0;              // since the epoch
  std::map<std::string, LiveLog> logs;  // by path
};

// A launch counts as ended if no log of it has grown for this long.
inline constexpr std::int64_t kLongSilenceUs = std::int64_t{3600} * 1'000'000;
// No rank whose log has grown since then is stuck.
inline constexpr std::int64_t kLeastStuckUs = 2'500'000;
// Whether a log of the launch has grown recently. For a log that has not grown while it was
// watched, its last record counts as well as its file's time, because a copied file has a new time.
bool IsRunning(const StatusAnswer& launch, const LiveJob& live);

// As FindFindings. Also finds ranks that are stuck, and leaves out what only the end of the logs
// can show: ranks that stopped, lack compiles or came late.
Result<std::vector<Finding>> FindLiveFindings(Database& database, const FindingsOptions& options,
                                              const LiveJob& live);

}  // namespace tlparse
