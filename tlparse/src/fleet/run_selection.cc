#include "fleet/run_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "queries/fleet/run_selection.h"
#include "store/any_rows.h"

namespace tlparse {
namespace {

// For databases from before runs had a UUID: the same for the same run on every host.
Uuid UuidOfOldRun(const RunSelection& run) {
  SequenceHash hash;
  hash.Add(run.name);
  hash.Add(run.created_at);
  const Hash128 digest = hash.Digest();
  return {digest.high, digest.low};
}

Result<void> ReadRun(Database& database, const std::string& name, RunSelection& run) {
  ASSIGN_OR_RETURN(const bool has_uuid, HasColumn(database, "run", "uuid"));
  ASSIGN_OR_RETURN(const bool has_experiments, HasColumn(database, "experiment", "run_id"));
  // The latest run is no experiment.
  const std::string_view of_latest =
      has_experiments ? "id NOT IN (SELECT run_id FROM experiment WHERE run_id IS NOT NULL)" : "1";
  ASSIGN_OR_RETURN(Statement find,
                   database.Prepare(fmt::format("SELECT id, name, created_at{} FROM run "
                                                "WHERE iif(?1 IS NULL, {}, name = ?1) "
                                                "ORDER BY id DESC LIMIT 1",
                                                has_uuid ? ", uuid" : "", of_latest)));
  if (!name.empty()) find.Bind(1, std::string_view(name));
  bool exists = false;
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(std::move(find))) {
    exists = true;
    run.run_id = row.Int("id");
    run.name = row.Text("name");
    run.created_at = row.Text("created_at");
    run.uuid = ParseUuid(row.Text("uuid")).value_or(UuidOfOldRun(run));
  }
  if (!exists)
    return Fail(ErrorCode::kNotFound,
                name.empty() ? fmt::format("'{}' holds no run", database.path())
                             : fmt::format("'{}' holds no run '{}'", database.path(), name));
  ASSIGN_OR_RETURN(const std::int64_t runs, database.QueryInt("SELECT count(*) FROM run"));
  run.is_everything = runs == 1;
  return {};
}

Result<void> ReadProcesses(Database& database, const RankRanges& ranks, RunSelection& run) {
  std::set<std::string> versions;
  std::set<std::int64_t> distinct_ranks, logs;
  FOR_EACH_ROW(const ProcessOfRun& row, Query<ProcessOfRun>(database, {.run_id = run.run_id})) {
    const auto id = static_cast<std::size_t>(row.id);
    const std::int64_t rank = row.rank.value_or(RunSelection::kNoRank);
    if (!ranks.empty() && !Contains(ranks, rank)) continue;
    if (run.has_process.size() <= id) {
      run.has_process.resize(id + 1);
      run.rank_of_process.resize(id + 1, RunSelection::kNoRank);
    }
    run.has_process[id] = true;
    run.rank_of_process[id] = rank;
    if (rank >= 0) distinct_ranks.insert(rank);
    if (row.torch_version) versions.emplace(*row.torch_version);
    logs.insert(row.log_file_id);
  }
  run.torch_versions.assign(versions.begin(), versions.end());
  run.rank_count = static_cast<std::int64_t>(distinct_ranks.size());
  if (!ranks.empty()) {
    run.is_everything = false;
    if (logs.empty()) return Fail(ErrorCode::kNotFound, "the run has no log of these ranks");
  }
  FOR_EACH_ROW(const LogToPush& row, Query<LogToPush>(database, {.run_id = run.run_id})) {
    if (!ranks.empty() && !logs.count(row.id)) continue;
    run.logs.push_back({row.id, FromHex(row.content_hash).value_or(HashBytes(row.content_hash)),
                        std::string(row.path)});
  }
  return {};
}

}  // namespace

Result<RankRanges> ParseRankRanges(const std::string& text) {
  RankRanges ranges;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    std::int64_t first = 0;
    std::from_chars_result parsed = std::from_chars(at, end, first);
    std::int64_t last = first;
    if (parsed.ec == std::errc() && parsed.ptr < end && *parsed.ptr == '-')
      parsed = std::from_chars(parsed.ptr + 1, end, last);
    const char* const next = parsed.ptr;
    if (parsed.ec != std::errc() || first < 0 || last < first ||
        (next < end && (*next != ',' || next + 1 == end)))
      return Fail(ErrorCode::kUsage, fmt::format("'{}' is no list of ranks like 0-63,128", text));
    ranges.emplace_back(first, last);
    at = next < end ? next + 1 : end;
  }
  return ranges;
}

bool Contains(const RankRanges& ranges, std::int64_t rank) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
    return rank >= range.first && rank <= range.second;
  });
}

Result<bool> HasColumn(Database& database, const std::string& table, const std::string& column) {
  ASSIGN_OR_RETURN(Statement find,
                   database.Prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = ?"));
  find.Bind(1, std::string_view(table));
  find.Bind(2, std::string_view(column));
  return find.Step();
}

Result<RunSelection> SelectRun(Database& database, const std::string& run,
                               const RankRanges& ranks) {
  RunSelection selection;
  RETURN_IF_ERROR(ReadRun(database, run, selection));
  RETURN_IF_ERROR(ReadProcesses(database, ranks, selection));
  ASSIGN_OR_RETURN(
      const std::int64_t first_us,
      database.QueryInt(fmt::format(
          "SELECT min(c.start_time_us) FROM compile c JOIN process p ON p.id = c.process_id "
          "JOIN log_file f ON f.id = p.log_file_id WHERE f.run_id = {}",
          selection.run_id)));
  selection.start_us = first_us;
  if (first_us <= 0) {
    ASSIGN_OR_RETURN(const std::int64_t ingested_s,
                     database.QueryInt(fmt::format(
                         "SELECT unixepoch(created_at) FROM run WHERE id = {}", selection.run_id)));
    selection.start_us = ingested_s * 1'000'000;
  }
  return selection;
}

}  // namespace tlparse
