// tlparse recompiles <db>: why functions were compiled again, a line for each guard.
#include <fmt/format.h>

#include <algorithm>

#include "answers/recompiles/series.h"
#include "base/fields.h"
#include "cli/answer.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/only_field.h"
#include "cli/rank_output.h"
#include "cli/schemas.h"
#include "facts/compiles/advice.h"
#include "facts/compiles/user_frames.h"
#include "facts/job/not_looked_for.h"
#include "facts/job/participants.h"
#include "facts/text/shorten.h"
#include "queries/answers/recompiles/series.h"

namespace tlparse {

namespace {

constexpr char kOfTorchLogs[] =
    "its text of TORCH_LOGS has no line of 'recompiles' (TORCH_LOGS=recompiles writes them)";

std::string GuardInWords(const RecompileTried& row) {
  std::string words =
      ParseRecompileReason(row.guard.value_or(""), row.reason, "", row.user_line.value_or(0)).text;
  return words.empty() ? std::string(row.reason) : words;
}

// Every earlier compile that was tried.
Result<void> PrintPairs(Database& database, QueryRows<RecompileTried> rows, const RunFilter& runs,
                        bool with_stacks, bool& is_empty) {
  Table table = runs.MakeTableOfLaunches({{"rank"},
                                          {"compile"},
                                          {"function"},
                                          {"after"},
                                          {"guard that failed"},
                                          {"where", Table::Align::kLeft, 0, true},
                                          {"status"}});
  ShownStacks shown;
  FOR_EACH_ROW(const RecompileTried& row, std::move(rows)) {
    // As of a series: else the place of the function.
    const bool has_own = row.user_file.has_value();
    std::string where = has_own ? WholePath(*row.user_file, row.file.value_or(""))
                                : std::string(row.file.value_or(""));
    const std::int64_t line = (has_own ? row.user_line : row.line).value_or(0);
    if (has_own || line > 0) where += fmt::format(":{}", line);
    runs.AddOfLaunch(
        table, std::string(row.run), CellText(row.launch),
        {CellText(row.rank), CellText(row.label), CellText(row.function), CellText(row.prior_label),
         GuardInWords(row), std::move(where), CellText(row.status)});
    if (!with_stacks || !row.compile_id) continue;
    ASSIGN_OR_RETURN(const std::string stack, UserFramesOf(database, *row.compile_id));
    shown.Add(fmt::format("{} {}{}", CellText(row.label), CellText(row.function),
                          row.rank ? fmt::format(" (rank {})", *row.rank) : std::string()),
              stack);
  }
  is_empty = table.empty();
  if (!is_empty) table.Print();
  for (const std::string& stack : shown.lines()) PrintWrapped(stack, 0, 2);
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

std::string ValuesText(const RecompileSeries& series) {
  constexpr std::size_t kMost = 8;
  const std::vector<std::string>& values = series.values;
  std::string text;
  for (std::size_t i = 0; i < values.size() && i < kMost; ++i)
    text += (i == 0 ? "" : ", ") + Shorten(values[i], 24);
  if (values.size() > kMost) text += fmt::format(", … ({})", values.size());
  if (series.values_rank) return fmt::format("rank {}: {}", *series.values_rank, text);
  if (series.values_pid) return fmt::format("pid {}: {}", *series.values_pid, text);
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
                      ValuesText(one), std::move(where), TimesText(one),
                      one.seconds_lost ? HumanDuration(*one.seconds_lost) : "", LimitText(one)});
  }
  table.Print();
  const bool has_several = std::any_of(all.begin(), all.end(), [](const RecompileSeries& one) {
    return one.ranks.size() + one.pids.size() > 1;
  });
  if (has_several) std::puts("lost: by the rank that lost most; every pair of compiles: --all");
  for (const RecompileSeries& one : all) {
    if (one.others_waited_s.value_or(0) <= 0) continue;
    PrintWrapped(
        fmt::format(
            "others waited {} in collectives while rank{} {} recompiled {}: {}, by recorder dumps",
            HumanDuration(*one.others_waited_s), one.ranks.size() == 1 ? "" : "s", Who(one),
            one.function, Shorten(one.guard, 60)),
        0, 2);
  }
}

constexpr std::string_view kSources[] = {"structured_trace", "torch_logs"};

struct RecompilesAnswer {
  std::vector<RecompileSeries> series;
  std::string why_none;
  std::string only;  // with --rank or --process
};

struct InRecompiles {
  QueryRows<RecompileTried>& tried;
};

}  // namespace

template <>
struct FieldsOf<RecompileSeries> {
  using Of = RecompileSeries;
  static constexpr FieldList list{
      Field{"run", &Of::run},
      Field{"launch", &Of::launch},
      Field{"function", OrNull{&Of::function}},
      Field{"file", OrNull{&Of::file}},
      Field{"line", Positive{&Of::line}, "of the function"},
      Field{"guard", &Of::guard, "what was compared, size 0 of x; else the guard"},
      Field{"at", OrNull{&Of::at}, "its line, where the guard names what only generated code has"},
      Field{"values", &Of::values,
            "in order: what compiles were made for, and what came; of the process that recompiled "
            "most"},
      Field{"values_rank", &Of::values_rank, "whose the values are, if others have others"},
      Field{"values_pid", &Of::values_pid, "the same of a process without a rank"},
      Field{"user_file", OrNull{&Of::user_file}, "where the guard comes from"},
      Field{"user_line", Positive{&Of::user_line}},
      Field{"recompiles", &Of::recompiles, "of the rank that has most"},
      Field{"least_recompiles", &Of::least_recompiles, "of the rank that has fewest"},
      Field{"refused", &Of::refused,
            "attempts that the recompile limit refused, of the rank that has most"},
      Field{"is_limit_reached", &Of::is_limit_reached, "of the function, whatever the guard"},
      Field{"seconds_lost", &Of::seconds_lost, "by these recompiles, of the rank that lost most"},
      Field{"others_waited_s", &Of::others_waited_s,
            "how long another rank waited in collectives for the rank that recompiled the forward, "
            "while it did "
            "so; of the rank for which they waited longest; null: no recorder dump tells"},
      Field{"compiles", &Of::compiles, "labels, of all ranks, each once"},
      Field{"ranks", &Of::ranks},
      Field{"pids", &Of::pids, "of processes without a rank"},
      Field{"source", [](const Of& of) { return kSources[of.is_of_torch_logs ? 1 : 0]; }, "",
            kSources},
  };
};

template <>
struct FieldsOf<RecompileTried> {
  using Of = RecompileTried;
  static constexpr FieldList list{
      Field{"run", &Of::run},
      Field{"rank", &Of::rank},
      Field{"label", &Of::label},
      Field{"function", &Of::function},
      Field{"file", &Of::file},
      Field{"line", &Of::line},
      Field{"prior_label", &Of::prior_label, "of the earlier compile"},
      Field{"ordinal", &Of::ordinal, "0: the newest earlier compile"},
      Field{"guard", &Of::guard},
      Field{"reason", &Of::reason, "as in the log"},
      Field{"user_file", &Of::user_file},
      Field{"user_line", &Of::user_line},
      Field{"status", &Of::status, "compile.status; of text of TORCH_LOGS refused: by the limit"},
      Field{"compile_id", &Of::compile_id},
      Field{"prior_compile_id", &Of::prior_compile_id},
      Field{"record_id", &Of::record_id},
      Field{"launch", &Of::launch},
      Field{"source", &Of::source, "", kSources},
      Field{"guard_in_words", &GuardInWords},
  };
};

template <>
struct FieldsOf<RecompilesAnswer> {
  using Of = RecompilesAnswer;
  static constexpr std::string_view description =
      "Why functions were compiled again: as series, and every earlier compile that was tried. "
      "null: unknown.";
  static constexpr FieldList list{
      Field{"series", &Of::series,
            "what one guard of one function failed on, over all ranks, by the newest earlier "
            "compile each time; functions that reached the limit first, then by seconds lost"},
      Field{"recompiles", [](const Of&, const InRecompiles& in) { return EachRow(in.tried); }},
      Missable{"not_looked_for", OrNull{&Of::why_none}, kWhyNone},
      Missable{"only", OrNull{&Of::only}, kOnly},
  };
};

std::string RecompilesSchema() {
  return SchemaOf<RecompilesAnswer, InRecompiles>("tlparse recompiles --json");
}

namespace {

struct RecompileOptions {
  RecompileFilter filter;
  RunFilter runs;
  bool json = false, all = false, stack = false;
};

// The run and launch that were named.
Result<void> ReadFilter(Database& database, RecompileOptions& options) {
  ASSIGN_OR_RETURN(const RunFilter::Named named, options.runs.Find(database));
  options.filter.run_id = named.run_id;
  options.filter.launch = named.launch;
  return CheckAsked(database, options.filter.asked, named.run_id, named.launch);
}

// Of loaded code PyTorch logs no guard that failed; empty: none was loaded.
Result<std::string> OfLoadedCode(Database& database, const std::optional<std::int64_t>& run_id) {
  ASSIGN_OR_RETURN(const FirstRow<LoadedCompile> loaded,
                   First(Query<LoadedCompile>(database, {.run_id = run_id})));
  if (!loaded || loaded->loaded_count == 0) return std::string();
  return fmt::format(
      "{} had precompiled code that was loaded, of which PyTorch logs no guard that failed: "
      "'tlparse cache' has what was compiled again all the same",
      Count(static_cast<std::size_t>(loaded->loaded_count), "compile"));
}

Result<std::int64_t> SizeOf(Database& database, const RecompileFilter& filter,
                            const AskedParticipant& asked) {
  ASSIGN_OR_RETURN(const FirstRow<SizeOfRecompiles> size,
                   First(Query<SizeOfRecompiles>(
                       database, {asked.rank, filter.run_id, filter.launch, asked.pid})));
  return size->recompiles;
}

// Of the recompiles of all.
Result<std::string> OnlyOf(Database& database, const RecompileFilter& filter) {
  if (!filter.asked.IsGiven()) return std::string();
  ASSIGN_OR_RETURN(const std::int64_t own, SizeOf(database, filter, filter.asked));
  ASSIGN_OR_RETURN(const std::int64_t all, SizeOf(database, filter, {}));
  return filter.asked.Only(static_cast<std::size_t>(all - own), "recompile");
}

Result<void> AnswerRecompiles(Database& database, RecompileOptions& options) {
  RETURN_IF_ERROR(ReadFilter(database, options));
  const RecompileFilter& filter = options.filter;
  QueryRows<RecompileTried> tried = Query<RecompileTried>(
      database, {filter.asked.rank, filter.run_id, filter.launch, filter.asked.pid});
  RecompilesAnswer answer;
  ASSIGN_OR_RETURN(answer.why_none, options.runs.WhyNone(database, kOfTorchLogs));
  ASSIGN_OR_RETURN(const std::string of_loaded, OfLoadedCode(database, filter.run_id));
  if (answer.why_none.empty()) answer.why_none = of_loaded;
  ASSIGN_OR_RETURN(answer.only, OnlyOf(database, filter));
  const auto say_only = [&] {
    if (!answer.only.empty()) PrintWrapped(answer.only, 0, 2);
  };
  const char* const none = answer.why_none.empty() ? "no recompiles" : answer.why_none.c_str();
  if (!options.json && (options.all || options.stack)) {
    bool is_empty = false;
    RETURN_IF_ERROR(PrintPairs(database, std::move(tried), options.runs, options.stack, is_empty));
    if (is_empty) std::puts(none);
    say_only();
    return {};
  }
  ASSIGN_OR_RETURN(answer.series, FindRecompileSeries(database, filter));
  if (options.json) {
    const JsonWriter json = ToJson(answer, InRecompiles{tried});
    RETURN_IF_ERROR(tried.Ended());
    PrintJson(json);
    return {};
  }
  if (answer.series.empty()) {
    std::puts(none);
  } else {
    PrintBounded(false, "--json", [&] { PrintSeries(answer.series, options.runs); });
    if (!of_loaded.empty()) PrintWrapped(of_loaded, 0, 2);
  }
  say_only();
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
  AddAsked(app, options.filter.asked);
  app.Flag("--all", options.all, "every earlier compile that was tried, and the guard that failed");
  app.Flag("--stack", options.stack, "as --all, with the user's frames that led to each compile");
  options.runs.AddTo(app);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  options.json = common.json;
  return AnswerFrom(common.database,
                    [&](Database& database) { return AnswerRecompiles(database, options); });
}

}  // namespace tlparse
