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
#include "base/plural.h"
#include "cli/answer.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/history_output.h"
#include "cli/rank_output.h"
#include "cli/vllm_start_output.h"
#include "facts/compiles/cuda_graphs.h"
#include "facts/compiles/recompile_reasons.h"
#include "facts/compiles/user_frames.h"
#include "facts/job/exits.h"
#include "facts/job/not_looked_for.h"
#include "facts/job/participants.h"
#include "facts/text/compile_label.h"
#include "facts/text/shorten.h"

namespace tlparse {

namespace {

constexpr char kElsewhereInText[] =
    "of its text of TORCH_LOGS see 'tlparse recompiles' and the view torch_log_graph_break";

// A compile, or those of several ranks that are alike in what is shown but their times, which are
// then those of the slowest.
struct HistoryRow {
  std::string run, launch, label, function, status, graphs, caches, calls, remarks, stack;
  std::vector<std::string> break_stacks;
  std::optional<std::int64_t> start_us;  // of the first
  std::optional<std::int64_t> total_us, least_us, dynamo_us, inductor_us, backward_us;
  std::optional<double> run_us;
  std::set<std::int64_t> ranks;
  std::string name;  // of a process without a rank, or of one that the rank started
  bool is_bad = false;

  // What rows have in common that become one.
  auto Key() const {
    return std::tie(run, launch, name, label, function, status, graphs, caches, calls, remarks,
                    stack, break_stacks);
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

// Of a compile and its lazy backward. Where the metrics of the compile itself are not in the log,
// that of its backward is no total.
std::optional<std::int64_t> Sum(const CompileInHistory& row, const std::optional<std::int64_t>& own,
                                const std::optional<std::int64_t>& backward) {
  if (!row.duration_us || (!own && !backward)) return std::nullopt;
  return own.value_or(0) + backward.value_or(0);
}

// What happened in the compile besides its times.
Result<std::string> Remarks(Database& database, const CompileInHistory& row) {
  std::string remarks;
  const auto add = [&](std::string_view remark) {
    remarks += remarks.empty() ? "" : "; ";
    remarks += remark;
  };
  if (row.fail_type && !row.fail_type->empty())
    add(IsRecompileLimit(*row.fail_type, row.fail_reason.value_or(""))
            ? "refused at the recompile limit"
            : *row.fail_type);
  if (row.ends_in_backward) add("the log ends inside its backward");
  if (row.ends_in_backward || !IsFinished(StatusOf(row))) {
    if (row.process_signal) add(SignalName(*row.process_signal) + " ended its process");
    if (row.process_exit_code)
      add(fmt::format("its process ended with exit code {}", *row.process_exit_code));
  }
  if (row.graph_breaks > 0) add(Count(static_cast<std::size_t>(row.graph_breaks), "graph break"));
  if (row.failed_guards && !row.failed_guards->empty()) {
    ASSIGN_OR_RETURN(std::vector<FailedEntry> entries, LoadFailedEntries(database, row.compile_id));
    // What older entries failed on was said of the compiles before.
    const std::size_t older = entries.size() - 1;
    entries.resize(1);
    add("recompiled " + Shorten(FailedEntriesText(entries, "after "), 90) +
        (older > 0 ? fmt::format(" (and {} older)", older) : ""));
  }
  if (row.cuda_graphs > 0)
    add(Count(static_cast<std::size_t>(row.cuda_graphs), "CUDA graph") + " recorded");
  if (row.cuda_graph_skip)
    add("no CUDA graph: " + Shorten(ReadCudaGraphSkip(*row.cuda_graph_skip).reason, 60));
  if (row.calls && *row.calls < 2)
    add(*row.calls == 0 ? "no call in the profiles" : "one call in the profiles");
  return remarks;
}

Result<HistoryRow> ReadRow(Database& database, const CompileInHistory& row, bool has_processes) {
  HistoryRow one;
  one.run = row.run;
  one.launch = CellText(row.launch);
  one.label = CompileLabel(row.label, row.generation);
  one.function = row.function.value_or("");
  one.status = Name(StatusOf(row));
  one.graphs = std::to_string(row.graphs);
  one.caches = row.caches.value_or("");
  one.calls = CellText(row.calls);
  ASSIGN_OR_RETURN(one.remarks, Remarks(database, row));
  one.start_us = row.start_time_us;
  one.total_us = one.least_us = Sum(row, row.duration_us, row.backward_duration_us);
  one.dynamo_us = row.dynamo_us;
  one.inductor_us = Sum(row, row.inductor_us, row.backward_inductor_us);
  one.backward_us = row.backward_duration_us;
  one.run_us = row.run_us;
  one.is_bad =
      !IsFinished(StatusOf(row)) || !row.fail_type.value_or("").empty() || row.ends_in_backward;
  if (row.rank) {
    one.ranks.insert(*row.rank);
  } else if (has_processes) {
    one.name = fmt::format("pid {}", row.pid);
  }
  if (row.child_kind) one.name = fmt::format("{} {}", one.name, *row.child_kind);
  std::replace(one.name.begin(), one.name.end(), '_', ' ');
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
  bool has_stacks = false;                         // asked for
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
        Shorten(FormatRankRanges({one.ranks.begin(), one.ranks.end()}), 24) + one.name,
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
  ShownStacks stacks;
  for (const HistoryRow& one : rows) {
    if (!shape.has_stacks) continue;
    const std::string who = FormatRankRanges({one.ranks.begin(), one.ranks.end()}) + one.name;
    const std::string what = fmt::format("{} {}{}", one.label, one.function,
                                         who.empty() ? "" : fmt::format(" ({})", Shorten(who, 24)));
    stacks.Add(what, one.stack);
    for (const std::string& of_break : one.break_stacks)
      stacks.Add("a graph break in " + what, of_break);
  }
  for (const std::string& line : stacks.lines()) PrintWrapped(line, 0, 2);
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
    std::vector<std::size_t> chosen = order;
    chosen.resize(count);
    std::sort(chosen.begin(), chosen.end());
    std::vector<HistoryRow> shown;
    for (const std::size_t i : chosen) shown.push_back(rows[i]);
    text = Captured([&] { PrintTable(shown, runs, shape); });
    const std::size_t size = CountCharacters(text);
    if (size <= kRoom || count <= 1) break;
    count = std::max<std::size_t>(1, std::min(count - 1, count * kRoom / size));
  }
  std::fputs(text.c_str(), stdout);
  if (count < rows.size()) fmt::print("and {}: --all\n", Count(rows.size() - count, "more row"));
  if (shape.has_several)
    std::puts("total: of the slowest of these ranks; each compile of each rank: --all");
}

struct HistoryOptions {
  AskedParticipant asked;
  std::optional<std::int64_t> skipped, most;
  RunFilter runs;
  bool json = false, all = false, stack = false;
};

// `is_part`: of one rank, process or launch.
Result<void> PrintHistory(Database& database, QueryRows<CompileInHistory> compiles,
                          const HistoryOptions& options, bool is_part) {
  const auto& [runs, all] = std::tie(options.runs, options.all);
  ASSIGN_OR_RETURN(const FirstRow<InputsOfHistory> inputs, First(Query<InputsOfHistory>(database)));
  HistoryShape shape{.has_profiles = inputs->has_profiles, .has_stacks = options.stack};
  std::vector<HistoryRow> rows;
  FOR_EACH_ROW(const CompileInHistory& row, std::move(compiles)) {
    ASSIGN_OR_RETURN(HistoryRow one, ReadRow(database, row, inputs->has_processes));
    if (options.stack) {
      ASSIGN_OR_RETURN(one.stack, UserFramesOf(database, row.compile_id));
      ASSIGN_OR_RETURN(one.break_stacks, UserFramesOfBreaks(database, row.compile_id));
    }
    rows.push_back(std::move(one));
  }
  if (rows.empty()) {
    ASSIGN_OR_RETURN(const std::string why_none, runs.WhyNone(database, kElsewhereInText));
    std::puts(!why_none.empty() ? why_none.c_str()
              : is_part         ? "no compile of this rank, process or launch"
                                : "no compiles in this database");
    return {};
  }
  if (!all) rows = JoinRanks(std::move(rows));
  shape.has_several = std::any_of(rows.begin(), rows.end(),
                                  [](const HistoryRow& one) { return one.ranks.size() > 1; });
  all ? PrintTable(rows, runs, shape) : PrintMostTelling(rows, runs, shape);
  return {};
}

Result<std::int64_t> SizeOf(Database& database, const AskedParticipant& asked,
                            const RunFilter::Named& named) {
  ASSIGN_OR_RETURN(
      const FirstRow<SizeOfHistory> size,
      First(Query<SizeOfHistory>(database, {asked.rank, named.run_id, named.launch, asked.pid})));
  return size->compiles;
}

// Of the compiles of all.
Result<std::string> OnlyOf(Database& database, const AskedParticipant& asked,
                           const RunFilter::Named& named) {
  if (!asked.IsGiven()) return std::string();
  ASSIGN_OR_RETURN(const std::int64_t own, SizeOf(database, asked, named));
  ASSIGN_OR_RETURN(const std::int64_t all, SizeOf(database, {}, named));
  return asked.Only(static_cast<std::size_t>(all - own), "compile");
}

Result<void> AnswerHistory(Database& database, HistoryOptions& options) {
  ASSIGN_OR_RETURN(const RunFilter::Named named, options.runs.Find(database));
  const auto& [rank, pid] = options.asked;
  RETURN_IF_ERROR(CheckAsked(database, options.asked, named.run_id, named.launch));
  const bool is_page = options.json && (options.skipped || options.most);
  ASSIGN_OR_RETURN(const std::string only, OnlyOf(database, options.asked, named));
  std::vector<VllmStart> starts;
  if (!options.asked.IsGiven() && !named.launch) {
    ASSIGN_OR_RETURN(starts, LoadVllmStarts(database, named.run_id));
  }
  auto compiles = Query<CompileInHistory>(
      database, {.rank = rank,
                 .run_id = named.run_id,
                 .launch = named.launch,
                 .pid = pid,
                 .skipped = options.skipped.value_or(0),
                 .most = is_page ? std::optional(options.most.value_or(-1)) : std::nullopt});
  if (!options.json) {
    RETURN_IF_ERROR(PrintHistory(database, std::move(compiles), options,
                                 options.asked.IsGiven() || options.runs.has_launch()));
    PrintVllmStarts(starts);
    if (!only.empty()) PrintWrapped(only, 0, 2);
    return {};
  }
  HistoryAnswer answer;
  answer.starts = std::move(starts);
  answer.only = only;
  ASSIGN_OR_RETURN(answer.why_none, options.runs.WhyNone(database, kElsewhereInText));
  if (is_page) {
    ASSIGN_OR_RETURN(answer.compile_count, SizeOf(database, options.asked, named));
  }
  ASSIGN_OR_RETURN(const JsonWriter json, HistoryJson(database, compiles, answer));
  PrintJson(json);
  return {};
}

}  // namespace

int RunHistory(std::span<const std::string> arguments) {
  Arguments app(
      "The compiles in order of time: when, how long by phase, status, graph breaks, recompiles "
      "and why, caches; with profiles how often each was called, and how long it ran. Compiles of "
      "several ranks that are alike share a line. With what vLLM printed, how long it took to "
      "start, by stage.",
      "history");
  AnswerArguments common;
  HistoryOptions options;
  AddAnswerArguments(app, common);
  AddAsked(app, options.asked);
  app.Flag("--all", options.all, "a line for each compile of each rank");
  app.Flag("--stack", options.stack, "with the user's frames that led to each compile");
  app.Add("--limit", options.most, "with --json: compiles at most").Positive();
  app.Add("--skip", options.skipped, "with --json: without so many first ones");
  options.runs.AddTo(app);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  options.json = common.json;
  return AnswerFrom(common.database,
                    [&](Database& database) { return AnswerHistory(database, options); });
}

}  // namespace tlparse
