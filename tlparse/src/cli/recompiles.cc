// tlparse recompiles <db>: why functions were compiled again, a line for each guard.
#include <fmt/format.h>

#include <algorithm>

#include "answers/recompiles/series.h"
#include "cli/answer.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/rank_output.h"
#include "facts/compiles/advice.h"
#include "facts/job/participants.h"
#include "facts/text/shorten.h"

namespace tlparse {

namespace {

// Of structured traces, and of text of TORCH_LOGS whose process has none.
constexpr char kRecompilesQuery[] =
    "SELECT run, rank, label, function, file, line, prior_label, ordinal, guard, reason, "
    "user_file, user_line, status, compile_id, prior_compile_id, record_id, launch, source FROM ("
    "SELECT r.name AS run, c.rank, c.label, "
    "c.function, c.file, c.line, m.prior_label, m.ordinal, m.guard, m.reason, m.user_file, "
    "m.user_line, c.status, m.compile_id, m.prior_compile_id, m.record_id, n.ordinal AS launch, "
    "'structured_trace' AS source, f.run_id, c.process_id, c.frame_id, c.frame_compile_id "
    "FROM recompile m JOIN compile c ON c.id = m.compile_id JOIN process p ON p.id = c.process_id "
    "JOIN log_file f ON f.id = p.log_file_id JOIN run r ON r.id = f.run_id "
    "LEFT JOIN launch n ON n.id = p.launch_id WHERE (?1 IS NULL OR c.rank = ?1) "
    "AND (?2 IS NULL OR r.id = ?2) AND (?3 IS NULL OR n.ordinal = ?3) "
    "AND (?4 IS NULL OR p.pid = ?4) "
    "UNION ALL SELECT r.name, t.rank, t.label, t.function, t.file, t.function_line, t.prior_label, "
    "0, t.guard, t.reason, NULL, NULL, CASE WHEN t.is_refused THEN 'refused' END, NULL, NULL, "
    "t.line, NULL, 'torch_logs', r.id, t.profile_id, 0, 0 FROM torch_log_recompile t "
    "JOIN profile p ON p.id = t.profile_id JOIN run r ON r.id = p.run_id "
    "WHERE t.process_id IS NULL AND (?1 IS NULL OR t.rank = ?1) AND (?2 IS NULL OR r.id = ?2) "
    "AND ?3 IS NULL AND ?4 IS NULL) ORDER BY run_id, rank, process_id, frame_id, "
    "frame_compile_id, record_id, ordinal";

constexpr char kOfTorchLogs[] =
    "its text of TORCH_LOGS has no line of 'recompiles' (TORCH_LOGS=recompiles writes them)";

std::string GuardInWords(const AnyRow& row) {
  const RecompileReason reason =
      ParseRecompileReason(row.Text("guard"), row.Text("reason"), "", row.Int("user_line"));
  return reason.text.empty() ? std::string(row.Text("reason")) : reason.text;
}

Result<void> AddGuardInWords(const AnyRow& row, JsonWriter& json) {
  json.Key("guard_in_words").String(GuardInWords(row));
  return {};
}

// Every earlier compile that was tried.
Result<void> PrintPairs(Statement statement, const RunFilter& runs, bool& is_empty) {
  Table table = runs.MakeTableOfLaunches({{"rank"},
                                          {"compile"},
                                          {"function"},
                                          {"after"},
                                          {"guard that failed"},
                                          {"where", Table::Align::kLeft, 0, true},
                                          {"status"}});
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(std::move(statement))) {
    const std::string where =
        row.IsNull("user_file")
            ? ""
            : fmt::format("{}:{}", WholePath(row.Text("user_file"), row.Text("file")),
                          row.Int("user_line"));
    runs.AddOfLaunch(
        table, CellText(row, "run"), CellText(row, "launch"),
        {CellText(row, "rank"), CellText(row, "label"), CellText(row, "function"),
         CellText(row, "prior_label"), GuardInWords(row), where, CellText(row, "status")});
  }
  is_empty = table.empty();
  if (!is_empty) table.Print();
  return {};
}

std::string Who(const RecompileSeries& series) {
  std::string text = Shorten(FormatRankRanges(series.ranks), 24);
  if (series.pids.empty()) return text;
  if (!text.empty()) text += ", ";
  text += series.pids.size() == 1 ? fmt::format("pid {}", series.pids.front())
                                  : fmt::format("{} processes", series.pids.size());
  return text;
}

std::string ValuesText(const std::vector<std::string>& values) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < values.size() && i < kMost; ++i)
    text += (i == 0 ? "" : ", ") + Shorten(values[i], 24);
  if (values.size() > kMost) text += fmt::format(", … ({})", values.size());
  return text;
}

std::string TimesText(const RecompileSeries& series) {
  if (series.least_recompiles == series.recompiles) return std::to_string(series.recompiles);
  return fmt::format("{} to {}", series.least_recompiles, series.recompiles);
}

std::string LimitText(const RecompileSeries& series) {
  if (!series.is_limit_reached) return "no";
  if (series.refused == 0) return "reached";
  return fmt::format("refused {}", series.refused);
}

void PrintSeries(const std::vector<RecompileSeries>& all, const RunFilter& runs) {
  Table table = runs.MakeTableOfLaunches({{"ranks"},
                                          {"function"},
                                          {"compiles", Table::Align::kLeft, 1},
                                          {"guard"},
                                          {"values"},
                                          {"where", Table::Align::kLeft, 0, true},
                                          {"times", Table::Align::kRight},
                                          {"lost", Table::Align::kRight},
                                          {"limit"}});
  for (const RecompileSeries& one : all) {
    std::string guard = Shorten(one.guard, 60);
    if (!one.at.empty()) guard += " at: " + Shorten(one.at, 50);
    const std::string& file = one.user_file.empty() ? one.file : one.user_file;
    const std::int64_t line = one.user_file.empty() ? one.line : one.user_line;
    std::string where = file.size() <= 40 ? file : "…" + file.substr(file.rfind('/'));
    if (line > 0) where += fmt::format(":{}", line);
    runs.AddOfLaunch(table, one.run, one.launch ? std::to_string(*one.launch) : "",
                     {Who(one), one.function, CompilesText(one.compiles), std::move(guard),
                      ValuesText(one.values), std::move(where), TimesText(one),
                      one.seconds_lost ? HumanDuration(*one.seconds_lost) : "", LimitText(one)});
  }
  table.Print();
  const bool has_several = std::any_of(all.begin(), all.end(), [](const RecompileSeries& one) {
    return one.ranks.size() + one.pids.size() > 1;
  });
  if (has_several) std::puts("lost: by the rank that lost most; every pair of compiles: --all");
}

void WriteSeries(JsonWriter& json, const RecompileSeries& one) {
  const auto number = [](std::int64_t line) {
    return line > 0 ? std::optional(line) : std::nullopt;
  };
  json.BeginObject().Key("run").String(one.run).Key("launch").OptionalInt(one.launch);
  json.Key("function").OptionalString(NonEmpty(one.function));
  json.Key("file").OptionalString(NonEmpty(one.file)).Key("line").OptionalInt(number(one.line));
  json.Key("guard").String(one.guard).Key("at").OptionalString(NonEmpty(one.at)).Key("values");
  WriteStrings(json, one.values);
  json.Key("user_file").OptionalString(NonEmpty(one.user_file));
  json.Key("user_line").OptionalInt(number(one.user_line));
  json.Key("recompiles").Int(one.recompiles).Key("least_recompiles").Int(one.least_recompiles);
  json.Key("refused").Int(one.refused).Key("is_limit_reached").Bool(one.is_limit_reached);
  json.Key("seconds_lost").OptionalReal(one.seconds_lost).Key("compiles");
  WriteStrings(json, one.compiles);
  json.Key("ranks").BeginArray();
  for (const std::int64_t rank : one.ranks) json.Int(rank);
  json.EndArray().Key("pids").BeginArray();
  for (const std::int64_t pid : one.pids) json.Int(pid);
  json.EndArray().Key("source");
  json.String(one.is_of_torch_logs ? "torch_logs" : "structured_trace").EndObject();
}

struct RecompileOptions {
  RecompileFilter filter;
  RunFilter runs;
  bool json = false, all = false;
};

Result<Statement> PreparePairs(Database& database, const RecompileFilter& filter) {
  ASSIGN_OR_RETURN(Statement rows, database.Prepare(kRecompilesQuery));
  rows.Bind(1, filter.rank);
  rows.Bind(2, filter.run_id);
  rows.Bind(3, filter.launch);
  rows.Bind(4, filter.pid);
  return rows;
}

// The run and launch that were named.
Result<void> ReadFilter(Database& database, RecompileOptions& options) {
  ASSIGN_OR_RETURN(const RunFilter::Named named, options.runs.Find(database));
  options.filter.run_id = named.run_id;
  options.filter.launch = named.launch;
  return {};
}

Result<void> AnswerRecompiles(Database& database, RecompileOptions& options) {
  RETURN_IF_ERROR(ReadFilter(database, options));
  ASSIGN_OR_RETURN(Statement rows, PreparePairs(database, options.filter));
  ASSIGN_OR_RETURN(const std::string why_none, options.runs.WhyNone(database, kOfTorchLogs));
  if (!options.json && options.all) {
    bool is_empty = false;
    RETURN_IF_ERROR(PrintPairs(std::move(rows), options.runs, is_empty));
    if (is_empty) std::puts(why_none.empty() ? "no recompiles" : why_none.c_str());
    return {};
  }
  ASSIGN_OR_RETURN(const std::vector<RecompileSeries> series,
                   FindRecompileSeries(database, options.filter));
  if (options.json) {
    JsonWriter json;
    json.BeginObject().Key("series").BeginArray();
    for (const RecompileSeries& one : series) WriteSeries(json, one);
    json.EndArray().Key("recompiles");
    RETURN_IF_ERROR(RowsToJson(AnyRows::Of(std::move(rows)), json, AddGuardInWords));
    if (!why_none.empty()) json.Key("not_looked_for").String(why_none);
    json.EndObject();
    PrintJson(json);
  } else if (series.empty()) {
    std::puts(why_none.empty() ? "no recompiles" : why_none.c_str());
  } else {
    PrintBounded(false, "--json", [&] { PrintSeries(series, options.runs); });
  }
  return {};
}

}  // namespace

int RunRecompiles(std::span<const std::string> arguments) {
  Arguments app(
      "Why functions were compiled again: a line for each guard that failed, with the values in "
      "order, how often, the time that it cost, and whether the recompile limit was reached.",
      "recompiles");
  AnswerArguments common;
  RecompileOptions options;
  AddAnswerArguments(app, common);
  app.Add("--rank", options.filter.rank, "only this rank");
  app.Add("--process", options.filter.pid, "only the process of this pid");
  app.Flag("--all", options.all, "every earlier compile that was tried, and the guard that failed");
  options.runs.AddTo(app);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  options.json = common.json;
  Result<Database> database = OpenAnswerDatabase(common.database);
  if (!database) return ReportError(database.error());
  if (const Result<void> answered = AnswerRecompiles(*database, options); !answered)
    return ReportError(answered.error());
  return kExitDone;
}

}  // namespace tlparse
