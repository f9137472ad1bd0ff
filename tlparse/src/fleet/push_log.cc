#include "fleet/push_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/gzip_body.h"
#include "fleet/sql_quote.h"

namespace tlparse {
namespace {

constexpr const char* kColumns =
    "job, day, run_id, load_id, version, state, replaces, pushed_us, run_name, source_uuid, "
    "job_key, host, start_us, torch_versions, ranks, tag_keys, tag_values, log_hashes, log_paths, "
    "tables, row_counts, plain_bytes, has_records, has_text, is_partial, tool_version, "
    "schema_version, content_version";

constexpr std::uint64_t kMostElements = 10'000'000;

// Writes or reads the members of a row in the order of kColumns.
struct Writing {
  RowBinaryWriter& to;
  void Value(const std::string& text) { to.Text(text); }
  void Value(const Uuid& uuid) { to.WriteUuid(uuid); }
  void Value(const std::uint64_t& number) { to.UInt64(number); }
  void Value(const std::int64_t& number) { to.Int64(number); }
  void Value(const Hash128& hash) { to.Hash(hash); }
  void Value(const std::uint8_t& number) { to.UInt8(number); }
  void Flag(const bool& is) { to.UInt8(is ? 1 : 0); }
  void Day(const std::int64_t& day) { to.UInt16(static_cast<std::uint16_t>(day)); }
  template <typename T>
  void List(const std::vector<T>& list) {
    to.Length(list.size());
    for (const T& one : list) Value(one);
  }
};
struct Reading {
  RowBinaryReader& from;
  void Value(std::string& text) { text = from.Text(); }
  void Value(Uuid& uuid) { uuid = from.ReadUuid(); }
  void Value(std::uint64_t& number) { number = from.UInt64(); }
  void Value(std::int64_t& number) { number = from.Int64(); }
  void Value(Hash128& hash) { hash = from.Hash(); }
  void Value(std::uint8_t& number) { number = from.UInt8(); }
  void Flag(bool& is) { is = from.UInt8() != 0; }
  void Day(std::int64_t& day) { day = from.UInt16(); }
  template <typename T>
  void List(std::vector<T>& list) {
    const std::uint64_t size = std::min(from.Length(), kMostElements);
    list.clear();
    for (std::uint64_t i = 0; i < size && !from.is_short() && !from.is_damaged(); ++i)
      Value(list.emplace_back());
  }
};

template <typename Access, typename Row>
void Visit(Access access, Row& row) {
  access.Value(row.job);
  access.Day(row.day);
  access.Value(row.run_id);
  access.Value(row.load_id);
  access.Value(row.version);
  access.Value(row.state);
  access.List(row.replaces);
  access.Value(row.pushed_us);
  access.Value(row.run_name);
  access.Value(row.source_uuid);
  access.Value(row.job_key);
  access.Value(row.host);
  access.Value(row.start_us);
  access.List(row.torch_versions);
  access.Value(row.ranks);
  access.List(row.tag_keys);
  access.List(row.tag_values);
  access.List(row.log_hashes);
  access.List(row.log_paths);
  access.List(row.tables);
  access.List(row.row_counts);
  access.Value(row.plain_bytes);
  access.Flag(row.has_records);
  access.Flag(row.has_text);
  access.Flag(row.is_partial);
  access.Value(row.tool_version);
  access.Value(row.schema_version);
  access.Value(row.content_version);
}

}  // namespace

Result<std::vector<PushRow>> ReadPushRows(ClickHouseClient& client, const std::string& condition) {
  std::string sql = fmt::format("SELECT {} FROM push", kColumns);
  if (!condition.empty()) sql += " WHERE " + condition;
  ASSIGN_OR_RETURN(const std::string answer,
                   client.Query(sql + " ORDER BY run_id, load_id, version FORMAT RowBinary"));
  RowBinaryReader reader(answer);
  std::vector<PushRow> rows;
  while (!reader.at_end()) {
    Visit(Reading{reader}, rows.emplace_back());
    if (reader.is_short() || reader.is_damaged())
      return Fail(ErrorCode::kRefused, "the server's answer about pushes is damaged");
  }
  return rows;
}

std::vector<PushRow> LiveLoads(const std::vector<PushRow>& rows) {
  std::map<std::uint64_t, const PushRow*> latest;
  for (const PushRow& row : rows) {
    const PushRow*& one = latest[row.load_id];
    if (one == nullptr || one->version < row.version) one = &row;
  }
  std::set<std::uint64_t> replaced;
  for (const auto& [load, row] : latest)
    if (row->state == PushRow::kLive) replaced.insert(row->replaces.begin(), row->replaces.end());
  std::vector<PushRow> live;
  for (const auto& [load, row] : latest)
    if (row->state == PushRow::kLive && !replaced.count(load)) live.push_back(*row);
  return live;
}

Result<void> WritePushRows(ClickHouseClient& client, std::span<const PushRow> rows) {
  std::string bytes;
  RowBinaryWriter writer(bytes);
  for (const PushRow& row : rows) Visit(Writing{writer}, row);
  GzipBody body;
  body.Append(bytes);
  const std::string gzip = body.Take();
  const std::string sql = fmt::format("INSERT INTO push ({}) FORMAT RowBinary", kColumns);
  const auto began = std::chrono::steady_clock::now();
  for (int attempt = 1;; ++attempt) {
    const ServerResult<void> sent = client.TryInsert(sql, gzip, began);
    if (sent) return {};
    if (RetryOf(sent.error().code, sent.error().status) == Retry::kNever ||
        !client.WaitToRetry(attempt, began))
      return tl::unexpected<Error>(client.ToError(sent.error()));
    // Twice the same row would say the same; but whether it is there is worth knowing.
    ASSIGN_OR_RETURN(const std::string there,
                     client.Query(fmt::format("SELECT count() FROM push WHERE load_id = {} "
                                              "AND version = {} FORMAT TabSeparated",
                                              rows.back().load_id, rows.back().version)));
    if (there != "0\n") return {};
  }
}

std::string LiveLoadsSql(const std::string& table, const std::string& where) {
  const std::string latest = fmt::format(
      "SELECT load_id, argMax(state, version) AS s, argMax(replaces, version) AS r "
      "FROM {}{} GROUP BY load_id",
      table, where.empty() ? "" : " WHERE " + where);
  return fmt::format(
      "SELECT load_id FROM ({0}) AS p "
      "WHERE s = 1 AND load_id GLOBAL NOT IN (SELECT arrayJoin(r) FROM ({0}) AS q WHERE s = 1)",
      latest);
}

Overlap CompareLogs(const PushRow& mine, const std::vector<PushRow>& live) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> hashes;
  std::set<std::string> paths(mine.log_paths.begin(), mine.log_paths.end());
  for (const Hash128& hash : mine.log_hashes) hashes.emplace(hash.high, hash.low);
  Overlap overlap;
  for (const PushRow& load : live) {
    if (load.load_id == mine.load_id) continue;
    std::size_t covered = 0;
    std::set<std::pair<std::uint64_t, std::uint64_t>> theirs;
    for (std::size_t i = 0; i < load.log_hashes.size(); ++i) {
      const std::pair hash{load.log_hashes[i].high, load.log_hashes[i].low};
      theirs.insert(hash);
      const bool is_same = hashes.count(hash) > 0;
      // An earlier state of a log that has grown since.
      const bool is_earlier = load.host == mine.host && i < load.log_paths.size() &&
                              load.log_paths[i] != "-" && paths.count(load.log_paths[i]) > 0;
      covered += is_same || is_earlier ? 1 : 0;
    }
    const bool is_as_full = load.has_records >= mine.has_records && load.has_text == mine.has_text;
    if (theirs == hashes && is_as_full) {
      overlap.is_there = true;
    } else if (covered == load.log_hashes.size() && covered > 0) {
      overlap.replaced.push_back(load.load_id);
    } else if (covered > 0) {
      overlap.conflict = fmt::format(
          "load {} of this run, pushed from {}, holds {} of these logs and {} others: push all of "
          "them together, or remove that run first ('tlparse fleet delete --run-id {}')",
          load.load_id, load.host, covered, load.log_hashes.size() - covered, ToText(load.run_id));
    }
  }
  return overlap;
}

}  // namespace tlparse
