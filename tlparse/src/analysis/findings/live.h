// Findings of a job that is watched while it runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/findings/findings.h"
#include "analysis/status.h"

namespace tlparse {

struct LiveLog {
  std::int64_t quiet_us = 0;  // how long it has not grown
  bool has_grown = false;     // while it was watched
};

struct LiveJob {
  std::int64_t now_us = 0;              // since the epoch
  std::map<std::string, LiveLog> logs;  // by path
};

// A launch of which no log has grown for so long is taken for one that has ended.
inline constexpr std::int64_t kLongSilenceUs = std::int64_t{3600} * 1'000'000;
// Whether a log of the launch has grown lately. Of a log that has not grown while it was watched,
// its last record counts as well as the time of its file: a copy has a time of its own.
bool IsRunning(const StatusAnswer& launch, const LiveJob& live);

// As FindFindings. Ranks that are stuck are found as well, and nothing is said that only the end of
// the logs can show: who stopped, who lacks compiles or came late.
Result<std::vector<Finding>> FindLiveFindings(Database& database, const FindingsOptions& options,
                                              const LiveJob& live);

}  // namespace tlparse
