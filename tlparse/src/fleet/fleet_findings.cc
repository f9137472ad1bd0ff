// Findings of all runs: derived from a run when they are first asked for, kept on the server.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/plural.h"
#include "base/version.h"
#include "findings/findings.h"
#include "fleet/cache_states.h"
#include "fleet/fleet_answer.h"
#include "fleet/pull.h"
#include "fleet/sql_quote.h"
#include "fleet/table_insert.h"
#include "fleet/temporary_database.h"

namespace tlparse {
namespace {

using Kind = FleetColumnOfAnswer::Kind;

struct ExaminedRun {
  std::string job, day, run_id;
  std::uint64_t last_load = 0;
  Hash128 loads_key;  // of the live loads and the version of this program
};

// Runs of the question, the latest first.
Result<std::vector<ExaminedRun>> ReadRuns(FleetReader& reader, const FleetQuestion& question) {
  ASSIGN_OR_RETURN(
      const auto rows,
      reader.Rows(
          fmt::format(
              "SELECT job, toString(day) AS d, toString(run_id) AS run, toString(max(load_id)), "
              "arrayStringConcat(arrayMap(x -> toString(x), arraySort(groupUniqArray(load_id))), "
              "',') FROM {} WHERE state = 1 AND {} "
              "GROUP BY job, day, run_id ORDER BY d DESC, min(start_us) DESC, job, run",
              reader.From("push"), reader.Live(question)),
          5));
  std::vector<ExaminedRun> runs;
  for (const auto& row : rows) {
    ExaminedRun& run = runs.emplace_back();
    run.job = row[0];
    run.day = row[1];
    run.run_id = row[2];
    run.last_load = std::strtoull(row[3].c_str(), nullptr, 10);
    SequenceHash key;
    key.Add(kVersion);
    key.Add(row[4]);
    run.loads_key = key.Digest();
  }
  return runs;
}

void WriteRow(TableInsert& insert, const ExaminedRun& run, std::int64_t ordinal,
              const Finding& finding) {
  RowBinaryWriter row(insert.row());
  row.Text(run.job);
  row.UInt16(static_cast<std::uint16_t>(ParseDay(run.day)));
  row.WriteUuid(ParseUuid(run.run_id).value_or(Uuid()));
  row.UInt64(run.last_load);
  row.Hash(run.loads_key);
  row.Int64(ordinal);
  const bool is_marker = ordinal < 0;
  row.Text(finding.id);
  row.Text(is_marker ? "" : Name(finding.severity));
  row.Text(is_marker ? "" : Name(finding.kind));
  row.Text(finding.title);
  row.NullFlag(!finding.place);
  if (finding.place) row.Text(finding.place->file);
  row.NullFlag(!finding.place);
  if (finding.place) row.Int64(finding.place->line);
  row.Int64(static_cast<std::int64_t>(finding.rank_count));
}

// One request: all of the rows arrive, or none.
Result<void> Store(const ClickHouseOptions& server, const ExaminedRun& run,
                   const std::vector<Finding>& findings) {
  ASSIGN_OR_RETURN(ClickHouseClient client, ClickHouseClient::Make(server));
  PushCounters counters;
  TableInsert insert(&client, "finding",
                     {"job", "day", "run_id", "load_id", "loads_key", "ordinal", "id", "severity",
                      "kind", "title", "file", "line", "rank_count"},
                     "", counters);
  for (std::size_t i = 0; i < findings.size(); ++i) {
    WriteRow(insert, run, static_cast<std::int64_t>(i), findings[i]);
    RETURN_IF_ERROR(insert.EndRow());
  }
  WriteRow(insert, run, -1, Finding());
  RETURN_IF_ERROR(insert.EndRow());
  return insert.Finish();
}

struct DerivedFindings {
  ClickHouseOptions server;
  std::vector<Finding> findings;
};

Result<DerivedFindings> Derive(const FleetQuestion& question, const ExaminedRun& run) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TemporaryDatabase> file, TemporaryDatabase::Make());
  PullOptions options;
  options.servers = question.servers;
  options.run_id = run.run_id;
  options.database_path = file->path();
  ASSIGN_OR_RETURN(const PullSummary summary, Pull(options));
  ASSIGN_OR_RETURN(Database database, Database::Open(file->path(), Database::Mode::kReadOnly));
  DerivedFindings derived{summary.server, {}};
  ASSIGN_OR_RETURN(derived.findings, FindFindings(database, {}));
  return derived;
}

// One finding of one run.
struct RunFinding {
  std::size_t run = 0;  // index into the runs
  std::string id, severity, kind, title;
  std::optional<std::string> file, line;
};

RunFinding ToRunFinding(std::size_t run, const Finding& finding) {
  RunFinding row{run,
                 finding.id,
                 std::string(Name(finding.severity)),
                 std::string(Name(finding.kind)),
                 finding.title,
                 {},
                 {}};
  if (finding.place) {
    row.file = finding.place->file;
    row.line = std::to_string(finding.place->line);
  }
  return row;
}

class FindingsReader {
 public:
  FindingsReader(FleetReader& reader, const FleetQuestion& question)
      : reader_(reader), question_(question) {}

  Result<FleetAnswer> Run() {
    ASSIGN_OR_RETURN(runs_, ReadRuns(reader_, question_));
    for (std::size_t i = 0; i < runs_.size(); ++i) index_[ToHex(runs_[i].loads_key)] = i;
    RETURN_IF_ERROR(ReadStored());
    RETURN_IF_ERROR(DeriveMissing());
    answer_.sections.push_back(Summarize());
    answer_.notes.push_back(
        fmt::format("{} run{}; new: the latest run of a job has it, no earlier run since then",
                    runs_.size(), PluralS(runs_.size())));
    return std::move(answer_);
  }

 private:
  Result<void> ReadStored() {
    is_known_.resize(runs_.size());
    ASSIGN_OR_RETURN(
        const FleetSection stored,
        reader_.Read("stored",
                     {{"loads_key"},
                      {"ordinal", Kind::kInt},
                      {"id"},
                      {"severity"},
                      {"kind"},
                      {"title"},
                      {"file"},
                      {"line", Kind::kInt}},
                     // A race of two questions may have stored them twice.
                     fmt::format("SELECT lower(hex(loads_key)) AS k, "
                                 "ordinal, id, severity, kind, title, file, line "
                                 "FROM {} WHERE {} ORDER BY k, ordinal LIMIT 1 BY k, ordinal",
                                 reader_.From("finding"), reader_.Live(question_))));
    std::vector<RunFinding> found;
    for (const auto& row : stored.rows) {
      const auto run = index_.find(row[0].value_or(""));
      if (run == index_.end()) continue;  // of earlier loads
      if (row[1] == "-1") {
        is_known_[run->second] = true;
        continue;
      }
      found.push_back({run->second, row[2].value_or(""), row[3].value_or(""), row[4].value_or(""),
                       row[5].value_or(""), row[6], row[7]});
    }
    for (RunFinding& one : found)
      if (is_known_[one.run]) findings_.push_back(std::move(one));
    return {};
  }

  Result<void> DeriveMissing() {
    const auto missing =
        static_cast<std::size_t>(std::count(is_known_.begin(), is_known_.end(), false));
    std::size_t done = 0;
    std::optional<Error> refused;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (is_known_[i]) continue;
      if (question_.on_progress) question_.on_progress(done, missing);
      Result<DerivedFindings> derived = Derive(question_, runs_[i]);
      ++done;
      if (!derived && derived.error().code == ErrorCode::kIo)
        return tl::unexpected<Error>(std::move(derived).error());
      if (!derived) {
        answer_.notes.push_back(fmt::format("run {}: its findings are not known: {}",
                                            runs_[i].run_id, derived.error().message));
        continue;
      }
      is_known_[i] = true;
      for (const Finding& finding : derived->findings)
        findings_.push_back(ToRunFinding(i, finding));
      if (refused) continue;
      const Result<void> stored = Store(derived->server, runs_[i], derived->findings);
      if (!stored && stored.error().code != ErrorCode::kRefused) return stored;
      if (!stored) refused = stored.error();
    }
    if (question_.on_progress && missing > 0) question_.on_progress(missing, missing);
    if (refused)
      answer_.notes.push_back(fmt::format(
          "the findings were not kept on the server, the next question derives them again: {}",
          refused->message));
    return {};
  }

  // A row for each finding of each job.
  FleetSection Summarize() const {
    struct Group {
      const RunFinding* latest = nullptr;
      std::set<std::size_t> runs;
    };
    std::map<std::pair<std::string, std::string>, Group> groups;
    for (const RunFinding& one : findings_) {
      Group& group = groups[{runs_[one.run].job, one.id}];
      if (group.latest == nullptr || one.run < group.latest->run) group.latest = &one;
      group.runs.insert(one.run);
    }
    std::map<std::string, std::vector<std::size_t>> runs_of;  // by job, the latest first
    for (std::size_t i = 0; i < runs_.size(); ++i)
      if (is_known_[i]) runs_of[runs_[i].job].push_back(i);
    struct Row {
      int severity;
      bool is_new;
      std::size_t run_count;
      std::vector<std::optional<std::string>> cells;
    };
    std::vector<Row> rows;
    for (const auto& [key, group] : groups) {
      const std::vector<std::size_t>& runs = runs_of[key.first];
      const bool is_new =
          runs.size() > 1 && group.runs.size() == 1 && *group.runs.begin() == runs.front();
      const RunFinding& latest = *group.latest;
      const auto severity = FindingSeverityOf(latest.severity).value_or(FindingSeverity::kNote);
      rows.push_back({static_cast<int>(severity),
                      is_new,
                      group.runs.size(),
                      {latest.severity, latest.kind,
                       runs.size() < 2 ? std::nullopt : std::optional(std::to_string(is_new)),
                       latest.title, latest.file, latest.line, key.first,
                       std::to_string(group.runs.size()), runs_[*group.runs.rbegin()].day,
                       runs_[latest.run].day, runs_[latest.run].run_id, key.second}});
    }
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return std::tuple(a.severity, !a.is_new, b.run_count) <
             std::tuple(b.severity, !b.is_new, a.run_count);
    });
    FleetSection section{"findings",
                         {{"severity"},
                          {"kind"},
                          {"is_new", Kind::kBool},
                          {"title"},
                          {"file"},
                          {"line", Kind::kInt},
                          {"job"},
                          {"runs", Kind::kInt},
                          {"first_day"},
                          {"last_day"},
                          {"run_id"},
                          {"id"}},
                         {}};
    for (Row& row : rows)
      if (section.rows.size() < static_cast<std::size_t>(question_.limit))
        section.rows.push_back(std::move(row.cells));
    return section;
  }

  FleetReader& reader_;
  const FleetQuestion& question_;
  FleetAnswer answer_;
  std::vector<ExaminedRun> runs_;
  std::map<std::string, std::size_t> index_;  // of runs_, by loads_key
  std::vector<bool> is_known_;                // by run
  std::vector<RunFinding> findings_;
};

}  // namespace

Result<FleetAnswer> FleetFindings(FleetReader& reader, const FleetQuestion& question) {
  return FindingsReader(reader, question).Run();
}

Result<FleetCounts> FleetWorstCounts(FleetReader& reader, const FleetQuestion& question,
                                     const std::string& without_source) {
  const std::string others =
      reader.Live(question) +
      (without_source.empty()
           ? ""
           : fmt::format(" AND run_id GLOBAL NOT IN (SELECT run_id FROM {} WHERE source_uuid = {})",
                         reader.From("push"), QuoteUuid(without_source)));
  const auto ask = [&](std::string_view table, std::string_view condition) -> Result<std::int64_t> {
    ASSIGN_OR_RETURN(
        const auto rows,
        reader.Rows(fmt::format("SELECT toString(max(n)) "
                                "FROM (SELECT run_id, load_id, process_id, count() AS n FROM {} "
                                "WHERE {} AND {} GROUP BY run_id, load_id, process_id) AS c",
                                reader.From(table), others, condition),
                    1));
    return rows.empty() ? 0 : std::strtoll(rows[0][0].c_str(), nullptr, 10);
  };
  FleetCounts worst;
  ASSIGN_OR_RETURN(const auto runs,
                   reader.Rows(fmt::format("SELECT toString(uniqExact(run_id)) FROM {} WHERE {}",
                                           reader.From("push"), others),
                               1));
  worst.run_count = runs.empty() ? 0 : std::strtoll(runs[0][0].c_str(), nullptr, 10);
  ASSIGN_OR_RETURN(worst.counts.recompiles, ask("recompile", "ordinal = 0"));
  ASSIGN_OR_RETURN(worst.counts.graph_breaks, ask("graph_break", "1"));
  ASSIGN_OR_RETURN(worst.counts.cache_misses, ask("cache_event", "state IN " + StatesThat(IsMiss)));
  ASSIGN_OR_RETURN(worst.counts.failures, ask("failure", "kind != 'restart'"));
  return worst;
}

}  // namespace tlparse
