#include "fleet/pull.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <tuple>

#include "base/remove_on_signal.h"
#include "facts/ranks/job_facts.h"
#include "fleet/pull_contents.h"
#include "fleet/pull_facts.h"
#include "fleet/pull_ids.h"
#include "fleet/row_stream.h"
#include "fleet/server_tables.h"
#include "fleet/sql_quote.h"
#include "inputs/join/kernel_lines.h"
#include "model/job_model.h"
#include "store/schema.h"
#include "store/text_pool.h"

namespace tlparse {
namespace {

struct FoundRun {
  ClickHouseOptions server;
  std::vector<PushRow> loads;  // live ones of one run
};

Result<std::optional<FoundRun>> FindOn(const ClickHouseOptions& server,
                                       const PullOptions& options) {
  ASSIGN_OR_RETURN(ClickHouseClient client, ClickHouseClient::Make(server));
  std::string where;
  if (!options.run_id.empty()) {
    where = "run_id = " + QuoteUuid(options.run_id);
  } else {
    where = "job = " + QuoteText(options.job);
    if (options.day >= 0) where += " AND day = " + QuoteDay(options.day);
    // All loads of the run that began last.
    where = fmt::format(
        "run_id IN (SELECT run_id FROM push WHERE {0} AND load_id IN ({1}) "
        "ORDER BY day DESC, start_us DESC, pushed_us DESC, run_id DESC LIMIT 1)",
        where, LiveLoadsSql("push", where));
  }
  ASSIGN_OR_RETURN(const std::vector<PushRow> rows, ReadPushRows(client, where));
  FoundRun found{server, LiveLoads(rows)};
  if (found.loads.empty()) return std::optional<FoundRun>();
  return std::optional<FoundRun>(std::move(found));
}

Result<FoundRun> FindRun(const PullOptions& options) {
  std::optional<FoundRun> best;
  const auto age = [](const FoundRun& run) {
    const PushRow& row = run.loads.front();
    return std::tuple(row.day, row.start_us, row.pushed_us);
  };
  for (const ClickHouseOptions& server : options.servers) {
    ASSIGN_OR_RETURN(std::optional<FoundRun> found, FindOn(server, options));
    if (found && (!best || age(*best) < age(*found))) best = std::move(found);
  }
  if (best) return std::move(*best);
  std::string where;
  for (const ClickHouseOptions& server : options.servers)
    where += (where.empty() ? " at " : ", ") + server.url;
  if (!options.run_id.empty())
    return Fail(ErrorCode::kNotFound, fmt::format("there is no run {}{}", options.run_id, where));
  return Fail(ErrorCode::kNotFound,
              fmt::format("there is no run of job '{}'{}{}", options.job,
                          options.day >= 0 ? " on " + DayText(options.day) : "", where));
}

class Puller {
 public:
  Puller(ClickHouseClient& client, Database& database, const FleetSchema& schema,
         const PullOptions& options, std::vector<PushRow> loads, PullLimit& limit)
      : client_(client),
        database_(database),
        schema_(schema),
        options_(options),
        loads_(std::move(loads)),
        limit_(limit) {}

  Result<std::uint64_t> Run() {
    RETURN_IF_ERROR(OrderLoads());
    ASSIGN_OR_RETURN(PulledTexts texts, PulledTexts::Make(database_));
    PulledRun run{database_, client_, schema_, texts, limit_, loads_.size() > 1};
    FactPuller facts(run, loads_, options_.ranks, options_.on_progress);
    ContentPuller contents(run, loads_);
    RETURN_IF_ERROR(facts.SetShifts());
    RETURN_IF_ERROR(facts.PullPools());
    RETURN_IF_ERROR(contents.PullContents());
    RETURN_IF_ERROR(facts.PullFacts());
    RETURN_IF_ERROR(contents.PullSets());
    RETURN_IF_ERROR(contents.PullPayloads(options_.ranks));
    RETURN_IF_ERROR(FillDerived(run.run_id));
    if (loads_.size() > 1 || !options_.ranks.empty()) {
      RETURN_IF_ERROR(WriteJobModel(database_, run.run_id));
      RETURN_IF_ERROR(WriteJobFacts(database_, run.run_id));
    }
    return run.rows;
  }

 private:
  // By the lowest rank of each, so that the run looks the same in whatever order hosts pushed.
  Result<void> OrderLoads() {
    if (loads_.size() < 2) return {};
    std::map<std::uint64_t, std::pair<std::int64_t, std::string>> lowest;
    for (const PushRow& load : loads_)
      lowest[load.load_id] = {std::numeric_limits<std::int64_t>::max(),
                              load.log_paths.empty() ? std::string() : load.log_paths.front()};
    ASSIGN_OR_RETURN(
        [[maybe_unused]] const std::uint64_t rows,
        StreamRows(client_,
                   fmt::format("SELECT load_id, min(assumeNotNull(process_rank)) FROM process "
                               "WHERE {} AND process_rank IS NOT NULL GROUP BY load_id",
                               OfLoads(loads_)),
                   limit_, [&](RowBinaryReader& reader) -> Result<void> {
                     const std::uint64_t load = reader.UInt64();
                     const std::int64_t rank = reader.Int64();
                     const auto found = lowest.find(load);
                     if (!reader.is_short() && found != lowest.end()) found->second.first = rank;
                     return {};
                   }));
    std::sort(loads_.begin(), loads_.end(), [&](const PushRow& a, const PushRow& b) {
      return std::tie(lowest[a.load_id], a.load_id) < std::tie(lowest[b.load_id], b.load_id);
    });
    return {};
  }

  // Tables that follow from others.
  Result<void> FillDerived(std::int64_t run_id) {
    RETURN_IF_ERROR(DivideKernelsAmongLines(database_, run_id));
    RETURN_IF_ERROR(database_.Execute(
        "INSERT INTO payload_hash_row SELECT hash, id FROM payload_row ORDER BY hash"));
    RETURN_IF_ERROR(FillRecordKinds(database_));
    return database_.Execute(
        fmt::format("INSERT INTO compile_record_row SELECT compile_id, id FROM record_row "
                    "WHERE compile_id IS NOT NULL AND (kind_id IS NULL OR kind_id > {}) "
                    "ORDER BY 1, 2",
                    static_cast<int>(kTextCreateUnbackedSymbol)));
  }

  ClickHouseClient& client_;
  Database& database_;
  const FleetSchema& schema_;
  const PullOptions& options_;
  std::vector<PushRow> loads_;
  PullLimit& limit_;
};

std::string DirectoryOf(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  return directory.empty() ? "." : directory;
}

Result<PullSummary> PullInto(const std::string& path, const FoundRun& found,
                             const PullOptions& options) {
  ASSIGN_OR_RETURN(ClickHouseClient client, ClickHouseClient::Make(found.server));
  ASSIGN_OR_RETURN(const FleetSchema schema, MakeFleetSchema());
  PullSummary summary;
  summary.server = found.server;
  const PushRow& first = found.loads.front();
  summary.run_id = first.run_id;
  summary.run_name = first.run_name;
  summary.job = first.job;
  summary.day = first.day;
  summary.load_count = found.loads.size();
  std::uint64_t announced = 0;
  for (const PushRow& load : found.loads) {
    announced += std::min(load.plain_bytes, std::uint64_t{1} << 44);
    summary.has_text = summary.has_text && load.has_text;
    summary.is_newer_schema =
        summary.is_newer_schema || load.schema_version > static_cast<std::uint64_t>(kSchemaVersion);
  }
  // Contents that were there before are not counted among what was pushed.
  PullLimit limit(DirectoryOf(path), 4 * announced + (std::uint64_t{1} << 30));
  ASSIGN_OR_RETURN(Database database, CreateDatabase(path));
  RETURN_IF_ERROR(database.Execute("BEGIN"));
  Puller puller(client, database, schema, options, found.loads, limit);
  ASSIGN_OR_RETURN(summary.rows, puller.Run());
  summary.received_bytes = limit.taken();
  RETURN_IF_ERROR(CreateIndexes(database));
  RETURN_IF_ERROR(database.Execute("COMMIT"));
  return summary;
}

}  // namespace

Result<PullSummary> Pull(const PullOptions& options) {
  if (options.servers.empty()) return Fail(ErrorCode::kUsage, "pull needs --url");
  if (!options.run_id.empty() && !IsUuid(options.run_id))
    return Fail(ErrorCode::kUsage, fmt::format("'{}' is no id of a run", options.run_id));
  ASSIGN_OR_RETURN(const FoundRun found, FindRun(options));
  const std::string temporary = fmt::format("{}.{}.tmp", options.database_path, getpid());
  unlink(temporary.c_str());
  const RemoveOnSignal remove_temporary(temporary);
  Result<PullSummary> summary = PullInto(temporary, found, options);
  if (summary && rename(temporary.c_str(), options.database_path.c_str()) != 0)
    summary = Fail(ErrorCode::kIo, fmt::format("cannot write '{}': {}", options.database_path,
                                               std::strerror(errno)));
  if (!summary) unlink(temporary.c_str());
  return summary;
}

}  // namespace tlparse
