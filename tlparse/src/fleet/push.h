// Copies one run of a database, or a part of it, to a fleet's tables: all of it becomes visible at
// once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "fleet/clickhouse_client.h"
#include "fleet/row_source.h"
#include "fleet/run_selection.h"
#include "fleet/table_insert.h"
#include "store/database.h"

namespace tlparse {

struct PushOptions {
  // One of them takes the whole run, chosen by the run's id.
  std::vector<ClickHouseOptions> servers;
  std::string run;      // name in the database; empty: the latest
  std::string job;      // empty: the last part of the run's name
  std::string job_key;  // the same on all hosts of one run; empty: the run is only in this database
  std::int64_t day = -1;  // since 1970; -1: of the run's first compile, UTC
  std::vector<std::pair<std::string, std::string>> tags;
  RankRanges ranks;
  RowOptions rows;
  // Waits a random time up to this, so that a thousand hosts do not connect at once.
  double spread_s = 0;
  bool dry_run = false;
  // Rows read so far, their estimated number, and the table that is being sent.
  std::function<void(std::uint64_t done, std::uint64_t total, std::string_view table)> on_progress;
};

struct PushSummary {
  Uuid run_id;
  std::uint64_t load_id = 0;
  std::string job;
  std::int64_t day = 0;
  std::string url;
  bool was_there = false;      // nothing was sent: a live load holds these logs
  bool was_withdrawn = false;  // another push of the same logs was first
  std::size_t replaced_loads = 0;
  PushCounters counters;
  std::vector<std::pair<std::string, std::uint64_t>> row_counts;
};

// kNotFound: no such run or ranks. kUsage: another load holds a part of these logs. kIo: the server
// is not reached. kRefused: it refuses. A push that fails or is killed does not change what is
// visible.
Result<PushSummary> Push(Database& database, const PushOptions& options);

// The run's id derived from a job key; the same on every host.
Uuid RunIdOfKey(const std::string& job_key);
// Version of the form of contents: rows of different versions coexist.
Result<std::uint64_t> ContentVersion(const FleetSchema& schema);

}  // namespace tlparse
