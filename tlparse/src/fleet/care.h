// Removes runs, old days and the remains of killed pushes from a fleet's tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/clickhouse_client.h"

namespace tlparse {

struct RemovedLoads {
  std::vector<std::uint64_t> loads;
  std::size_t table_count = 0;  // tables that had rows of these loads
};

// Hides the run at once, then has its facts deleted (the server does that in the background).
// Contents stay: other runs share them. kNotFound: there is no such run on this server.
Result<RemovedLoads> DeleteRun(ClickHouseClient& client, const std::string& run_id);

struct GcOptions {
  std::int64_t older_than_days = 0;  // 0: days are kept
  // Younger loads may still be running.
  std::int64_t min_age_s = 86'400;
  bool dry_run = false;
};
struct GcSummary {
  RemovedLoads unfinished;       // loads without a row of `push`
  RemovedLoads dead;             // withdrawn or replaced loads
  std::int64_t before_day = -1;  // days before it were removed; -1: none
};
Result<GcSummary> CollectGarbage(ClickHouseClient& client, const GcOptions& options);

}  // namespace tlparse
