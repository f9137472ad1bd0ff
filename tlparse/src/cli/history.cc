// tlparse history <db>: the compiles in order of time.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "artifacts/common/compile_status.h"
#include "artifacts/common/text/recompile_limit.h"
#include "cli/answer.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "facts/compiles/recompile_reasons.h"
#include "facts/job/participants.h"
#include "facts/text/shorten.h"

namespace tlparse {

namespace {

// Calls are those of the graph of the compile that was called most. A profile that ended before the
// compile began says nothing about it. Ranges of ids, not "?2 IS NULL OR": these are searched by index, so that of a database with
// other runs only the named one is read.
constexpr char kCompilesQuery[] =
    "WITH ran AS MATERIALIZED (SELECT compile_id, max(calls) AS calls, "
    "sum(us) AS run_us, sum(device_us) AS device_us FROM (SELECT l.compile_id, l.graph_id, "
    "count(*) AS calls, sum(s.duration_ns) / 1e3 AS us, sum(l.device_ns) / 1e3 AS device_us "
    "FROM profile p JOIN compiled_slice_row s ON s.profile_id = p.id "
    "JOIN compiled_slice_link_row l ON l.slice_id = s.id "
    "WHERE p.run_id BETWEEN ifnull(?2, 0) AND ifnull(?2, 9223372036854775807) "
    "AND p.overlaps_id IS NULL AND l.is_call = 1 AND l.compile_id IS NOT NULL GROUP BY 1, 2) "
    "GROUP BY 1) "
    "SELECT r.name AS run, h.*, n.ordinal AS launch, p.pid, CASE WHEN ran.calls IS NOT NULL "
    "OR (EXISTS (SELECT 1 FROM profile x WHERE x.process_id = h.process_id "
    "AND x.kind IN (SELECT name FROM profile_kind WHERE is_of_profiler) AND x.end_us >= "
    "h.start_time_us) AND EXISTS (SELECT 1 "
    "FROM graph g WHERE g.compile_id = h.compile_id)) THEN coalesce(ran.calls, 0) END AS calls, "
    "ran.run_us, ran.device_us, (SELECT group_concat(guard, '; ') "
    "FROM (SELECT 'after ' || coalesce(m.prior_label, '?') || ': ' || coalesce(m.guard, "
    "m.reason) AS guard FROM recompile m WHERE m.compile_id = h.compile_id "
    "ORDER BY m.record_id, m.ordinal)) AS failed_guards FROM compile_history h "
    "LEFT JOIN ran ON ran.compile_id = h.compile_id JOIN run r ON r.id = h.run_id "
    "JOIN process p ON p.id = h.process_id LEFT JOIN launch n ON n.id = p.launch_id "
    "WHERE (?1 IS NULL OR h.rank = ?1) AND (?4 IS NULL OR p.pid = ?4) AND r.id BETWEEN ifnull(?2, "
    "0) "
    "AND ifnull(?2, 9223372036854775807) AND (?3 IS NULL OR n.ordinal = ?3) "
    "ORDER BY h.run_id, h.start_time_us IS NULL, h.start_time_us, h.rank, h.compile_id";

constexpr char kElsewhereInText[] =
    "of its text of TORCH_LOGS see 'tlparse recompiles' and the view torch_log_graph_break";

// A compile, or those of several ranks that are alike in what is shown but their times, which are
// then those of the slowest.
struct HistoryRow {
  std::string run, launch, label, function, status, graphs, caches, calls, remarks;
  std::optional<std::int64_t> start_us;  // of the first
  std::optional<std::int64_t> total_us, least_us, dynamo_us, inductor_us, backward_us;
  std::optional<double> run_us;
  std::set<std::int64_t> ranks;
  std::string name;  // of a process without a rank
  bool is_bad = false;

  // What rows have in common that become one.
  auto Key() const {
    return std::tie(run, launch, name, label, function, status, graphs, caches, calls, remarks);
  }
  // Which is shown where there is no room for all.
  auto Weight() const {
    return std::make_tuple(is_bad, !remarks.empty() || status != "ok", total_us.value_or(0));
  }
};

std::string TimeOfDay(const std::optional<std::int64_t>& us) {
  if (!us) return "";
  return fmt::format("{:%H:%M:%S}.{:03}", fmt::gmtime(static_cast<std::time_t>(*us / 1'000'000)),
                     *us / 1000 % 1000);
}

std::string DurationText(const std::optional<std::int64_t>& us) {
  return us ? HumanDuration(static_cast<double>(*us) / 1e6) : "";
}

// A row of kCompilesQuery.
class HistoryReader {
 public:
  HistoryReader(Database& database, bool names_processes)
      : database_(database), names_processes_(names_processes) {}
  Result<HistoryRow> Read(const AnyRow& row) const;

 private:
  Result<std::string> Remarks(const AnyRow& row) const;

  Database& database_;
  bool names_processes_;
};

// Of a compile and its lazy backward. Where the metrics of the compile itself are not in the log,
// that of its backward is no total.
std::optional<std::int64_t> Sum(const AnyRow& row, std::string_view own,
                                std::string_view backward) {
  if (row.IsNull("duration_us") || (row.IsNull(own) && row.IsNull(backward))) return std::nullopt;
  return row.Int(own) + row.Int(backward);
}

// What happened in the compile besides its times.
Result<std::string> HistoryReader::Remarks(const AnyRow& row) const {
  std::string remarks;
  const auto add = [&](const std::string& remark) {
    remarks += (remarks.empty() ? "" : "; ") + remark;
  };
  if (const std::string type = CellText(row, "fail_type"); !type.empty())
    add(IsRecompileLimit(type, CellText(row, "fail_reason")) ? "refused at the recompile limit"
                                                             : type);
  if (const std::int64_t breaks = row.Int("graph_breaks"); breaks > 0)
    add(fmt::format("{} graph break{}", breaks, breaks == 1 ? "" : "s"));
  if (!CellText(row, "failed_guards").empty()) {
    ASSIGN_OR_RETURN(std::vector<FailedEntry> entries,
                     LoadFailedEntries(database_, row.Int("compile_id")));
    // What older entries failed on was said of the compiles before.
    const std::size_t older = entries.size() - 1;
    entries.resize(1);
    add("recompiled " + Shorten(FailedEntriesText(entries, "after "), 90) +
        (older > 0 ? fmt::format(" (and {} older)", older) : ""));
  }
  if (const std::optional<std::int64_t> calls = row.OptionalInt("calls"); calls && *calls < 2)
    add(*calls == 0 ? "no call in the profiles" : "one call in the profiles");
  return remarks;
}

Result<HistoryRow> HistoryReader::Read(const AnyRow& row) const {
  HistoryRow one;
  one.run = CellText(row, "run");
  one.launch = CellText(row, "launch");
  one.label = CellText(row, "label");
  if (const std::int64_t generation = row.Int("generation"); generation > 0)
    one.label += fmt::format("#{}", generation + 1);
  one.function = CellText(row, "function");
  one.status = CellText(row, "status");
  one.graphs = CellText(row, "graphs");
  one.caches = CellText(row, "caches");
  one.calls = CellText(row, "calls");
  ASSIGN_OR_RETURN(one.remarks, Remarks(row));
  one.start_us = row.OptionalInt("start_time_us");
  one.total_us = one.least_us = Sum(row, "duration_us", "backward_duration_us");
  one.dynamo_us = row.OptionalInt("dynamo_us");
  one.inductor_us = Sum(row, "inductor_us", "backward_inductor_us");
  one.backward_us = row.OptionalInt("backward_duration_us");
  one.run_us = row.OptionalReal("run_us");
  one.is_bad = !IsFinished(CompileStatusFrom(one.status)) || !CellText(row, "fail_type").empty();
  if (const std::optional<std::int64_t> rank = row.OptionalInt("rank")) {
    one.ranks.insert(*rank);
  } else if (names_processes_) {
    one.name = "pid " + CellText(row, "pid");
  }
  return one;
}

void Join(HistoryRow& all, HistoryRow one) {
  all.ranks.insert(one.ranks.begin(), one.ranks.end());
  if (one.least_us && (!all.least_us || *one.least_us < *all.least_us)) all.least_us = one.least_us;
  if (!one.total_us || (all.total_us && *one.total_us <= *all.total_us)) return;
  all.total_us = one.total_us;
  all.dynamo_us = one.dynamo_us;
  all.inductor_us = one.inductor_us;
  all.backward_us = one.backward_us;
  all.run_us = one.run_us;
}

// In the order of the first of each. Of a process without a rank, and of one rank, a row stays one.
std::vector<HistoryRow> JoinRanks(std::vector<HistoryRow> rows) {
  std::vector<HistoryRow> joined;
  std::map<std::string, std::vector<std::size_t>> known;
  for (HistoryRow& one : rows) {
    std::vector<std::size_t>& candidates = known[one.label + '\n' + one.function];
    const auto same = std::find_if(candidates.begin(), candidates.end(), [&](std::size_t i) {
      return joined[i].Key() == one.Key() && !one.ranks.empty() &&
             !joined[i].ranks.contains(*one.ranks.begin());
    });
    if (same != candidates.end()) {
      Join(joined[*same], std::move(one));
      continue;
    }
    candidates.push_back(joined.size());
    joined.push_back(std::move(one));
  }
  return joined;
}

struct HistoryShape {
  bool has_profiles = false, has_several = false;  // rows of several ranks
};

std::vector<Table::Column> Headings(const HistoryShape& shape) {
  using Align = Table::Align;
  std::vector<Table::Column> headings = {{shape.has_several ? "ranks" : "rank"},
                                         {"compile"},
                                         {"start (UTC)", Align::kLeft, 2},
                                         {"function"},
                                         {"status"},
                                         {"total", Align::kRight}};
  if (shape.has_several) headings.push_back({"fastest", Align::kRight, 7});
  headings.insert(headings.end(), {{"dynamo", Align::kRight, 5},
                                   {"inductor", Align::kRight, 4},
                                   {"backward", Align::kRight, 6},
                                   {"graphs", Align::kRight, 3}});
  if (shape.has_profiles) {
    headings.push_back({"calls", Align::kRight});
    headings.push_back({"run time", Align::kRight});
  }
  headings.push_back({"caches", Align::kLeft, 1});
  headings.push_back({"remarks"});
  return headings;
}

void PrintTable(const std::vector<HistoryRow>& rows, const RunFilter& runs,
                const HistoryShape& shape) {
  Table table = runs.MakeTableOfLaunches(Headings(shape));
  for (const HistoryRow& one : rows) {
    std::vector<std::string> cells = {
        one.name.empty() ? Shorten(FormatRankRanges({one.ranks.begin(), one.ranks.end()}), 24)
                         : one.name,
        one.label,
        TimeOfDay(one.start_us),
        one.function,
        one.status,
        DurationText(one.total_us)};
    if (shape.has_several)
      cells.push_back(one.ranks.size() > 1 ? DurationText(one.least_us) : std::string());
    cells.insert(cells.end(), {DurationText(one.dynamo_us), DurationText(one.inductor_us),
                               DurationText(one.backward_us), one.graphs});
    if (shape.has_profiles) {
      cells.push_back(one.calls);
      cells.push_back(one.run_us ? HumanDuration(*one.run_us / 1e6) : "");
    }
    cells.push_back(one.caches);
    cells.push_back(one.remarks);
    runs.AddOfLaunch(table, one.run, one.launch, std::move(cells));
  }
  table.Print();
}

// As many rows as there is room for: those of failed compiles, those with remarks, the slowest.
void PrintMostTelling(const std::vector<HistoryRow>& rows, const RunFilter& runs,
                      const HistoryShape& shape) {
  constexpr std::size_t kRoom = kMostAnswerText - 250;
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return rows[a].Weight() > rows[b].Weight();
  });
  constexpr std::size_t kLeastRow = 40;  // characters
  std::size_t count = std::min(rows.size(), kRoom / kLeastRow);
  std::string text;
  while (true) {
    std::vector<std::size_t> chosen(order.begin(),
                                    order.begin() + static_cast<std::ptrdiff_t>(count));
    std::sort(chosen.begin(), chosen.end());
    std::vector<HistoryRow> shown;
    for (const std::size_t i : chosen) shown.push_back(rows[i]);
    text = Captured([&] { PrintTable(shown, runs, shape); });
    const std::size_t size = CountCharacters(text);
    if (size <= kRoom || count <= 1) break;
    count = std::max<std::size_t>(1, std::min(count - 1, count * kRoom / size));
  }
  std::fputs(text.c_str(), stdout);
  if (count < rows.size()) fmt::print("and {} more rows: --all\n", rows.size() - count);
  if (shape.has_several)
    std::puts("total: of the slowest of these ranks; each compile of each rank: --all");
}

Result<std::vector<HistoryRow>> ReadHistory(Database& database, Statement statement) {
  ASSIGN_OR_RETURN(const std::int64_t has_processes,
                   database.QueryInt("SELECT EXISTS (SELECT 1 FROM process p "
                                     "JOIN log_file f ON f.id = p.log_file_id WHERE p.rank IS NULL "
                                     "GROUP BY f.run_id HAVING count(*) > 1)"));
  const HistoryReader reader(database, has_processes != 0);
  std::vector<HistoryRow> rows;
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(std::move(statement))) {
    ASSIGN_OR_RETURN(HistoryRow one, reader.Read(row));
    rows.push_back(std::move(one));
  }
  return rows;
}

// `is_part`: of one rank, process or launch.
Result<void> PrintHistory(Database& database, Statement statement, const RunFilter& runs, bool all,
                          bool is_part) {
  HistoryShape shape;
  ASSIGN_OR_RETURN(
      const std::int64_t has_profiles,
      database.QueryInt(
          "SELECT EXISTS (SELECT 1 FROM profile p JOIN profile_kind k ON k.name = p.kind "
          "WHERE k.has_times)"));
  shape.has_profiles = has_profiles != 0;
  ASSIGN_OR_RETURN(std::vector<HistoryRow> rows, ReadHistory(database, std::move(statement)));
  if (rows.empty()) {
    ASSIGN_OR_RETURN(const std::string why_none, runs.WhyNone(database, kElsewhereInText));
    std::puts(!why_none.empty() ? why_none.c_str()
              : is_part         ? "no compile of this rank, process or launch"
                                : "no compiles in this database");
    return {};
  }
  if (all) {
    PrintTable(rows, runs, shape);
    return {};
  }
  rows = JoinRanks(std::move(rows));
  shape.has_several = std::any_of(rows.begin(), rows.end(),
                                  [](const HistoryRow& one) { return one.ranks.size() > 1; });
  PrintMostTelling(rows, runs, shape);
  return {};
}

// The failed guards as the table has them, of all earlier compiles.
Result<void> AddGuardsInWords(Database& database, const AnyRow& row, JsonWriter& json) {
  ASSIGN_OR_RETURN(const std::vector<FailedEntry> entries,
                   LoadFailedEntries(database, row.Int("compile_id")));
  std::optional<std::string> words;
  if (!entries.empty()) words = FailedEntriesText(entries, "after ");
  json.Key("failed_guards_in_words").OptionalString(words);
  return {};
}

}  // namespace

int RunHistory(std::span<const std::string> arguments) {
  Arguments app(
      "The compiles in order of time: when, how long by phase, status, graph breaks, recompiles "
      "and why, caches; with profiles how often each was called, and how long it ran. Compiles of "
      "several ranks that are alike share a line.",
      "history");
  AnswerArguments common;
  std::optional<std::int64_t> rank, pid;
  bool all = false;
  RunFilter runs;
  AddAnswerArguments(app, common);
  app.Add("--rank", rank, "only this rank");
  app.Add("--process", pid, "only the process of this pid");
  app.Flag("--all", all, "a line for each compile of each rank");
  runs.AddTo(app);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  Result<Database> database = OpenAnswerDatabase(common.database);
  if (!database) return ReportError(database.error());
  Result<Statement> rows = database->Prepare(kCompilesQuery);
  if (!rows) return ReportError(rows.error());
  rows->Bind(1, rank);
  rows->Bind(4, pid);
  if (Result<void> bound = runs.Bind(*database, 2, *rows); !bound)
    return ReportError(bound.error());
  if (common.json) {
    const Result<std::string> why_none = runs.WhyNone(*database, kElsewhereInText);
    if (!why_none) return ReportError(why_none.error());
    return PrintRowsAsJson(
        std::move(*rows), "compiles",
        [&](const AnyRow& row, JsonWriter& json) { return AddGuardsInWords(*database, row, json); },
        *why_none);
  }
  if (const Result<void> printed =
          PrintHistory(*database, std::move(*rows), runs, all, rank || pid || runs.has_launch());
      !printed)
    return ReportError(printed.error());
  return kExitDone;
}

}  // namespace tlparse
