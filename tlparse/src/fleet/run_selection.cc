#include "fleet/run_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

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
  ASSIGN_OR_RETURN(Statement find, database.Prepare(fmt::format(
                                       "SELECT id, name, created_at, {} FROM run "
                                       "WHERE ?1 IS NULL OR name = ?1 ORDER BY id DESC LIMIT 1",
                                       has_uuid ? "uuid" : "NULL")));
  if (name.empty()) {
    find.BindNull(1);
  } else {
    find.Bind(1, std::string_view(name));
  }
  ASSIGN_OR_RETURN(const bool exists, find.Step());
  if (!exists)
    return Fail(ErrorCode::kNotFound,
                name.empty() ? fmt::format("'{}' holds no run", database.path())
                             : fmt::format("'{}' holds no run '{}'", database.path(), name));
  run.run_id = find.Int(0);
  run.name = find.Text(1);
  run.created_at = find.Text(2);
  run.uuid = ParseUuid(find.Text(3)).value_or(UuidOfOldRun(run));
  find.Reset();
  ASSIGN_OR_RETURN(const std::int64_t runs, database.QueryInt("SELECT count(*) FROM run"));
  run.is_everything = runs == 1;
  return {};
}

Result<void> ReadProcesses(Database& database, const RankRanges& ranks, RunSelection& run) {
  ASSIGN_OR_RETURN(Statement read,
                   database.Prepare("SELECT p.id, p.rank, p.torch_version, p.log_file_id "
                                    "FROM process p JOIN log_file f ON f.id = p.log_file_id "
                                    "WHERE f.run_id = ? ORDER BY p.id"));
  read.Bind(1, run.run_id);
  std::set<std::string> versions;
  std::set<std::int64_t> distinct_ranks, logs;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, read.Step());
    if (!has_row) break;
    const auto id = static_cast<std::size_t>(read.Int(0));
    const std::int64_t rank = read.IsNull(1) ? RunSelection::kNoRank : read.Int(1);
    if (!ranks.empty() && !Contains(ranks, rank)) continue;
    if (run.has_process.size() <= id) {
      run.has_process.resize(id + 1);
      run.rank_of_process.resize(id + 1, RunSelection::kNoRank);
    }
    run.has_process[id] = true;
    run.rank_of_process[id] = rank;
    if (rank >= 0) distinct_ranks.insert(rank);
    if (!read.IsNull(2)) versions.emplace(read.Text(2));
    logs.insert(read.Int(3));
  }
  run.torch_versions.assign(versions.begin(), versions.end());
  run.rank_count = static_cast<std::int64_t>(distinct_ranks.size());
  if (!ranks.empty()) {
    run.is_everything = false;
    if (logs.empty()) return Fail(ErrorCode::kNotFound, "the run has no log of these ranks");
  }
  ASSIGN_OR_RETURN(
      Statement files,
      database.Prepare("SELECT id, content_hash, path FROM log_file WHERE run_id = ? ORDER BY id"));
  files.Bind(1, run.run_id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, files.Step());
    if (!has_row) break;
    if (!ranks.empty() && !logs.count(files.Int(0))) continue;
    run.logs.push_back({files.Int(0), FromHex(files.Text(1)).value_or(HashBytes(files.Text(1))),
                        std::string(files.Text(2))});
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
