// The part of a database that is pushed: one run, or the processes of some of its ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "fleet/row_binary.h"
#include "store/database.h"
#include "store/hash128.h"

namespace tlparse {

// Ranks by ranges, ascending: "0-63,128". Empty: all.
using RankRanges = std::vector<std::pair<std::int64_t, std::int64_t>>;
// kUsage unless the text is such a list.
Result<RankRanges> ParseRankRanges(const std::string& text);
bool Contains(const RankRanges& ranges, std::int64_t rank);

struct SelectedLog {
  std::int64_t id = 0;
  Hash128 hash;  // of its bytes
  std::string path;
};

struct RunSelection {
  std::int64_t run_id = 0;
  std::string name;
  std::string created_at;
  Uuid uuid;                  // of the run in the database
  bool is_everything = true;  // the database holds nothing else
  std::vector<SelectedLog> logs;
  std::vector<bool> has_process;              // by process.id
  std::vector<std::int64_t> rank_of_process;  // kNoRank: none
  std::vector<std::string> torch_versions;
  std::int64_t rank_count = 0;
  std::int64_t start_us = 0;  // of the first compile, else when it was ingested

  static constexpr std::int64_t kNoRank = -1;
  bool Has(std::int64_t process) const {
    return process >= 0 && static_cast<std::size_t>(process) < has_process.size() &&
           has_process[static_cast<std::size_t>(process)];
  }
};

// `run`: name; empty: the latest. kNotFound if there is no such run, or nothing of these ranks.
Result<RunSelection> SelectRun(Database& database, const std::string& run, const RankRanges& ranks);

// Whether a table of the database has the column: a database may be older than this program.
Result<bool> HasColumn(Database& database, const std::string& table, const std::string& column);

}  // namespace tlparse
