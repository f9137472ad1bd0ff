#include "fleet/push.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <span>
#include <thread>

#include "base/version.h"
#include "fleet/push_contents.h"
#include "fleet/push_log.h"
#include "fleet/server_tables.h"
#include "fleet/sql_quote.h"
#include "queries/fleet/push.h"
#include "store/schema.h"

namespace tlparse {
namespace {

// To be raised when the normalisation of contents changes: code that is the same then has another
// hash, which must not look like changed code.
constexpr std::int64_t kNormalization = 2;

// In this order: what a pool's rows refer to is noted before that pool is written.
constexpr std::array<std::string_view, 5> kPoolOrder = {"payload_content", "stack_frame",
                                                        "cache_key", "content", "text"};

std::uint64_t Random64() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The upper 28 bits are the time in units of 16 s since 1970, so that `fleet gc` can tell the rows of a
// killed client from those that are being written; the other bits are random.
std::uint64_t NewLoadId(std::int64_t now_s) {
  const auto units = static_cast<std::uint64_t>(now_s / 16);
  return units << 36 | (Random64() >> 28);
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

std::string JobOfRun(const std::string& run) {
  std::string job = run;
  while (!job.empty() && job.back() == '/') job.pop_back();
  if (const std::size_t slash = job.rfind('/'); slash != std::string::npos) job.erase(0, slash + 1);
  return job.empty() ? "run" : job;
}

class Pusher {
 public:
  Pusher(Database& database, const PushOptions& options, const FleetSchema& schema,
         const RunSelection& run, ClickHouseClient* client)
      : database_(database), options_(options), schema_(schema), run_(run), client_(client) {}

  Result<PushSummary> Run(PushRow row) {
    row_ = std::move(row);
    summary_ = {};
    summary_.run_id = row_.run_id;
    summary_.job = row_.job;
    summary_.day = row_.day;
    if (client_ != nullptr) {
      ASSIGN_OR_RETURN(const bool is_wanted, CheckOverlap());
      if (!is_wanted) return summary_;
    }
    // A request that arrived in part leaves rows that only another load can tell from the new ones.
    constexpr int kMostLoads = 3;
    for (int load = 1;; ++load) {
      std::int64_t now_s = NowNs() / 1'000'000'000;
      if (client_ != nullptr) {
        ASSIGN_OR_RETURN(now_s, ServerNowS(*client_));
      }
      row_.load_id = NewLoadId(now_s);
      needs_new_load_ = false;
      const Result<void> written = WriteLoad();
      if (written) break;
      if (!needs_new_load_ || load == kMostLoads) return tl::unexpected<Error>(written.error());
    }
    summary_.load_id = row_.load_id;
    if (client_ == nullptr) return summary_;
    row_.version = static_cast<std::uint64_t>(NowNs());
    row_.pushed_us = NowNs() / 1000;
    RETURN_IF_ERROR(WritePushRows(*client_, std::span(&row_, 1)));
    RETURN_IF_ERROR(ResolveRace());
    return summary_;
  }

 private:
  std::string OfRun() const { return "run_id = " + QuoteUuid(ToText(row_.run_id)); }

  // False: nothing is to do.
  Result<bool> CheckOverlap() {
    ASSIGN_OR_RETURN(const std::vector<PushRow> rows, ReadPushRows(*client_, OfRun()));
    const std::vector<PushRow> live = LiveLoads(rows);
    const Overlap overlap = CompareLogs(row_, live);
    // All loads of a run have one job and day: rows of a run lie together.
    if (!live.empty()) {
      summary_.job = row_.job = live.front().job;
      summary_.day = row_.day = live.front().day;
    }
    if (overlap.is_there) {
      summary_.was_there = true;
      return false;
    }
    if (!overlap.conflict.empty()) return Fail(ErrorCode::kUsage, overlap.conflict);
    row_.replaces = overlap.replaced;
    summary_.replaced_loads = overlap.replaced.size();
    return true;
  }

  std::string KeyBytes() const {
    std::string bytes;
    RowBinaryWriter write(bytes);
    write.Text(row_.job);
    write.UInt16(static_cast<std::uint16_t>(row_.day));
    write.WriteUuid(row_.run_id);
    write.UInt64(row_.load_id);
    return bytes;
  }

  std::string CountSql(const std::string& table) const {
    return fmt::format(
        "SELECT count() "
        "FROM {} WHERE job = {} AND day = {} AND {} AND load_id = {} FORMAT TabSeparated",
        QuoteName(table), QuoteText(row_.job), QuoteDay(row_.day), OfRun(), row_.load_id);
  }

  TableInsert FactInsert(const std::string& table, const std::vector<std::string>& own) {
    std::vector<std::string> columns(std::begin(kFactKey), std::end(kFactKey));
    columns.insert(columns.end(), own.begin(), own.end());
    return {client_, table, columns, CountSql(table), summary_.counters};
  }

  Result<void> Finish(const std::string& table, TableInsert& insert, Result<void> written) {
    if (written) written = insert.Finish();
    if (!written) {
      needs_new_load_ = insert.needs_new_load();
      return written;
    }
    if (insert.row_count() > 0) summary_.row_counts.emplace_back(table, insert.row_count());
    return {};
  }

  Result<void> WriteTable(PushContext& context, const FleetTable& table) {
    std::vector<std::string> columns;
    for (const FleetColumn& column : table.columns) columns.push_back(column.name);
    TableInsert insert = FactInsert(table.name, columns);
    return Finish(
        table.name, insert,
        WriteRows(context, table, options_.rows, KeyBytes(), insert, [&](std::uint64_t rows) {
          rows_read_ += rows;
          if (options_.on_progress) options_.on_progress(rows_read_, 0, table.name);
        }));
  }

  Result<void> WriteLoad() {
    summary_.row_counts.clear();
    summary_.counters = {};
    rows_read_ = 0;
    ASSIGN_OR_RETURN(PushContext context, PushContext::Make(database_, schema_, run_));
    for (const FleetTable& table : schema_.tables)
      if (table.kind == FleetTable::Kind::kFact) RETURN_IF_ERROR(WriteTable(context, table));
    if (!run_.is_everything) RETURN_IF_ERROR(AddCallers(context));
    for (const std::string_view pool : kPoolOrder) {
      const FleetTable* table = schema_.Find(pool);
      // Strings of all kinds lie in one table: what they are is not known there.
      if (pool == "text" && !options_.rows.with_text) continue;
      if (table != nullptr) RETURN_IF_ERROR(WriteTable(context, *table));
    }
    ContentPusher contents(client_, context, schema_, options_.rows, row_.content_version,
                           summary_.counters);
    TableInsert components = FactInsert("run_component", {"name", "component", "value_hash"});
    RETURN_IF_ERROR(
        Finish("run_component", components, contents.PushRunComponents(KeyBytes(), components)));
    RETURN_IF_ERROR(contents.PushComponents());
    RETURN_IF_ERROR(contents.PushPayloads());
    RETURN_IF_ERROR(contents.PushContents());
    row_.tables.clear();
    row_.row_counts.clear();
    for (const auto& [name, count] : summary_.row_counts) {
      row_.tables.push_back(name);
      row_.row_counts.push_back(count);
    }
    row_.plain_bytes = summary_.counters.plain_bytes;
    return client_ == nullptr ? Result<void>() : Verify();
  }

  // A server that answers 200 may still have kept less: its rows are counted before the push is
  // reported as complete.
  Result<void> Verify() {
    for (std::size_t i = 0; i < row_.tables.size(); ++i) {
      ASSIGN_OR_RETURN(const std::string answer, client_->Query(CountSql(row_.tables[i])));
      if (answer == std::to_string(row_.row_counts[i]) + "\n") continue;
      needs_new_load_ = true;
      return Fail(ErrorCode::kRefused,
                  fmt::format("{} has {} rows of this load in {}, {} were sent", client_->url(),
                              ExceptionText(answer), row_.tables[i], row_.row_counts[i]));
    }
    return {};
  }

  // Frames of a stack refer to their callers, whose ids are smaller.
  Result<void> AddCallers(PushContext& context) {
    FOR_EACH_ROW(const CallerOfFrame& frame, Query<CallerOfFrame>(database_)) {
      if (context.used.stacks.Has(frame.id) && frame.parent_id)
        context.used.stacks.Add(*frame.parent_id);
    }
    return {};
  }

  // Two pushes of the same logs may both have found nothing: the one that was written last goes.
  // A client that sees both reports it, as the other may have looked too early.
  Result<void> ResolveRace() {
    ASSIGN_OR_RETURN(const std::vector<PushRow> rows, ReadPushRows(*client_, OfRun()));
    for (const PushRow& other : LiveLoads(rows)) {
      if (other.load_id == row_.load_id) continue;
      const Overlap overlap = CompareLogs(row_, {other});
      if (!overlap.is_there && overlap.replaced.empty() && overlap.conflict.empty()) continue;
      const bool is_mine_last =
          std::pair(row_.version, row_.load_id) > std::pair(other.version, other.load_id);
      PushRow last = is_mine_last ? row_ : other;
      last.state = PushRow::kWithdrawn;
      last.version = std::max(row_.version, other.version) + 1;
      RETURN_IF_ERROR(WritePushRows(*client_, std::span(&last, 1)));
      if (is_mine_last) {
        summary_.was_withdrawn = true;
        return {};
      }
    }
    return {};
  }

  Database& database_;
  const PushOptions& options_;
  const FleetSchema& schema_;
  const RunSelection& run_;
  ClickHouseClient* client_;
  PushRow row_;
  PushSummary summary_;
  std::uint64_t rows_read_ = 0;
  bool needs_new_load_ = false;
};

PushRow DescribeRun(const PushOptions& options, const RunSelection& run) {
  PushRow row;
  row.job = options.job.empty() ? JobOfRun(run.name) : options.job;
  row.day =
      options.day >= 0 ? options.day : std::max<std::int64_t>(0, run.start_us / 86'400'000'000);
  row.run_id = options.job_key.empty() ? run.uuid : RunIdOfKey(options.job_key);
  row.run_name = run.name;
  row.source_uuid = run.uuid;
  row.job_key = options.job_key;
  row.host = HostName();
  row.start_us = run.start_us;
  row.torch_versions = run.torch_versions;
  row.ranks = static_cast<std::uint64_t>(run.rank_count);
  for (const auto& [key, value] : options.tags) {
    row.tag_keys.push_back(key);
    row.tag_values.push_back(value);
  }
  for (const SelectedLog& log : run.logs) {
    row.log_hashes.push_back(log.hash);
    row.log_paths.push_back(log.path);
  }
  row.has_records = options.rows.with_records;
  row.has_text = options.rows.with_text;
  row.is_partial = !options.ranks.empty();
  row.tool_version = kVersion;
  row.schema_version = kSchemaVersion;
  return row;
}

}  // namespace

Uuid RunIdOfKey(const std::string& job_key) {
  SequenceHash hash;
  hash.Add("tlparse run of job key");
  hash.Add(job_key);
  const Hash128 digest = hash.Digest();
  return {digest.high, digest.low};
}

Result<std::uint64_t> ContentVersion(const FleetSchema& schema) {
  SequenceHash hash;
  hash.Add(kNormalization);
  hash.Add(kVersion);
  for (const FleetTable& table : schema.tables) {
    if (table.kind != FleetTable::Kind::kContent) continue;
    hash.Add(table.name);
    for (const FleetColumn& column : table.columns) hash.Add(column.name);
  }
  return hash.Digest().low;
}

Result<PushSummary> Push(Database& database, const PushOptions& options) {
  if (options.servers.empty()) return Fail(ErrorCode::kUsage, "push needs --url");
  RETURN_IF_ERROR(database.Execute("PRAGMA mmap_size = 0; PRAGMA cache_size = -16384; BEGIN"));
  ASSIGN_OR_RETURN(const FleetSchema schema, MakeFleetSchema());
  ASSIGN_OR_RETURN(const RunSelection run, SelectRun(database, options.run, options.ranks));
  PushRow row = DescribeRun(options, run);
  ASSIGN_OR_RETURN(row.content_version, ContentVersion(schema));
  // A run lies on one shard with everything it refers to.
  const ClickHouseOptions& server = options.servers[row.run_id.low % options.servers.size()];
  ASSIGN_OR_RETURN(ClickHouseClient client, ClickHouseClient::Make(server));
  if (options.spread_s > 0 && !options.dry_run) {
    std::mt19937_64 random(Random64());
    std::this_thread::sleep_for(std::chrono::duration<double>(
        std::uniform_real_distribution<>(0, options.spread_s)(random)));
  }
  if (!options.dry_run) RETURN_IF_ERROR(CheckServerTables(client, schema));
  Pusher pusher(database, options, schema, run, options.dry_run ? nullptr : &client);
  ASSIGN_OR_RETURN(PushSummary summary, pusher.Run(std::move(row)));
  summary.url = server.url;
  return summary;
}

}  // namespace tlparse
