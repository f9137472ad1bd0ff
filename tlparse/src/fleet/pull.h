// Copies a run of a fleet to a database of its own. Every answer prints the same for it as for the
// pushed one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/clickhouse_client.h"
#include "fleet/push_log.h"
#include "fleet/run_selection.h"

namespace tlparse {

struct PullOptions {
  std::vector<ClickHouseOptions> servers;
  // Which run: by its id, else the latest of the job (of that day).
  std::string run_id;
  std::string job;
  std::int64_t day = -1;
  RankRanges ranks;  // empty: all
  std::string database_path;
  std::function<void(std::uint64_t rows, std::string_view table)> on_progress;
};

struct PullSummary {
  ClickHouseOptions server;  // the one that holds the run
  Uuid run_id;
  std::string run_name;
  std::string job;
  std::int64_t day = 0;
  std::size_t load_count = 0;
  std::uint64_t rows = 0;
  std::uint64_t received_bytes = 0;
  bool has_text = true;  // false: hashes replace texts
  // A later tlparse pushed it: data that this one does not know was left out.
  bool is_newer_schema = false;
};

// Writes `database_path` when everything has arrived; until then, and after a failure, it is
// unchanged. kNotFound: no such run. kIo: the server is not reached, or the disk is full. kRefused:
// the server refuses, or sends invalid data.
Result<PullSummary> Pull(const PullOptions& options);

}  // namespace tlparse
