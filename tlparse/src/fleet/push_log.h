// Table `push`: the loads of a run, and which of them are live.
//
// A load is one attempt of a push. Its rows become visible all at once, when its row of `push` is
// inserted. A load is live if its latest row has state 1 and no live row `replaces` it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/clickhouse_client.h"
#include "fleet/row_binary.h"
#include "store/hash128.h"

namespace tlparse {

struct PushRow {
  enum State : std::uint8_t { kLive = 1, kWithdrawn = 2 };
  std::string job;
  std::int64_t day = 0;  // since 1970, UTC
  Uuid run_id;
  std::uint64_t load_id = 0;
  std::uint64_t version = 0;  // nanoseconds since 1970 when it was written; larger ones win
  std::uint8_t state = kLive;
  std::vector<std::uint64_t> replaces;
  std::int64_t pushed_us = 0;
  std::string run_name;
  Uuid source_uuid;
  std::string job_key;
  std::string host;
  std::int64_t start_us = 0;
  std::vector<std::string> torch_versions;
  std::uint64_t ranks = 0;
  std::vector<std::string> tag_keys, tag_values;
  std::vector<Hash128> log_hashes;
  std::vector<std::string> log_paths;
  std::vector<std::string> tables;
  std::vector<std::uint64_t> row_counts;
  std::uint64_t plain_bytes = 0;
  bool has_records = false;
  bool has_text = true;
  bool is_partial = false;  // --ranks: part of a database
  std::string tool_version;
  std::uint64_t schema_version = 0;
  std::uint64_t content_version = 0;
};

// Rows of `push` for which the condition holds (SQL; "" for all), every version of every load.
Result<std::vector<PushRow>> ReadPushRows(ClickHouseClient& client, const std::string& condition);
// The latest row of each live load, by load.
std::vector<PushRow> LiveLoads(const std::vector<PushRow>& rows);
// Writes the rows, of one run, all or none. They are written once even if the request is repeated.
Result<void> WritePushRows(ClickHouseClient& client, std::span<const PushRow> rows);

// "SELECT load_id …" of all live loads, for IN (…). `where` narrows the rows of `push` to runs or
// jobs, never to single loads. `table`: push, or push_all.
std::string LiveLoadsSql(const std::string& table, const std::string& where);

// How the logs of a push relate to the live loads of its run.
struct Overlap {
  bool is_there = false;  // one live load holds exactly these logs
  // Loads whose logs are all among these (or earlier states of them).
  std::vector<std::uint64_t> replaced;
  std::string conflict;  // a load that holds some of them and others: not empty
};
Overlap CompareLogs(const PushRow& mine, const std::vector<PushRow>& live);

}  // namespace tlparse
