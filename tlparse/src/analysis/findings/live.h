// Findings of a job that is watched while it runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/findings/findings.h"

namespace tlparse {

struct LiveJob {
  // By path: how long the log has not grown, microseconds.
  std::map<std::string, std::int64_t> quiet_us;
};

// As FindFindings. Ranks that are stuck are found as well, and nothing is said that only the end of
// the logs can show: who stopped, who lacks compiles or came late.
Result<std::vector<Finding>> FindLiveFindings(Database& database, const FindingsOptions& options,
                                              const LiveJob& live);

}  // namespace tlparse
