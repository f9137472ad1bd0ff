// tlparse cost <db>: where the time of the profiled steps went.
#include "facts/cost/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cli/answer.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/cost_output.h"
#include "cli/rank_output.h"
#include "cli/shares.h"
#include "cli/steps.h"
#include "facts/job/participants.h"
#include "facts/text/compile_label.h"
#include "facts/text/shorten.h"

namespace tlparse {
namespace {

constexpr std::pair<std::string_view, CostBy> kQuestions[] = {
    {"line", CostBy::kLine},   {"kernel", CostBy::kKernel}, {"node", CostBy::kNode},
    {"graph", CostBy::kGraph}, {"op", CostBy::kOp},         {"module", CostBy::kModule},
};

std::string OptionalUs(const std::optional<double>& us) {
  return us ? HumanMicroseconds(*us) : std::string();
}

// What the paths have in common up to a '/' is left out.
std::size_t CommonDirectory(const std::vector<CostProfile>& profiles) {
  std::string_view common = profiles.front().path;
  for (const CostProfile& profile : profiles) {
    const auto end =
        std::mismatch(common.begin(), common.end(), profile.path.begin(), profile.path.end()).first;
    common = common.substr(0, static_cast<std::size_t>(end - common.begin()));
  }
  return common.rfind('/') + 1;
}

bool HasLaunches(const CostAnswer& answer) {
  const auto& profiles = answer.profiles;
  return std::any_of(profiles.begin(), profiles.end(), [&](const CostProfile& profile) {
    return profile.launch != profiles.front().launch;
  });
}

void PrintCompileTime(const CostProfile& profile) {
  const double compile_us = profile.compile_us.value_or(0);
  if (compile_us <= 0) return;
  const double share = compile_us / std::max(profile.window_us, 1e-9);
  PrintLine(
      fmt::format(
          "compiles were under way for {} ({}) of it, by the times of the log{}",
          HumanMicroseconds(compile_us), Percent(share),
          share > 0.1 ? ": a profile of later steps shows what a step costs without them" : ""),
      2);
}

// In what the time outside of compiled graphs went.
void PrintOutside(const CostProfile& profile) {
  constexpr double kLeastShare = 0.01;  // of the window; the rest is summed
  if (profile.outside_us < kLeastShare * profile.window_us || profile.outside.empty()) return;
  std::string line = "outside:";
  double others_us = 0;
  std::size_t shown = 0, others = 0;
  for (const CostProfile::Outside& part : profile.outside) {
    if (shown == 4 || part.us < kLeastShare * profile.window_us) {
      others_us += part.us;
      ++others;
      continue;
    }
    line += fmt::format("{} {} in {}", shown++ == 0 ? "" : ",",
                        PartText(HumanMicroseconds(part.us), part.us, profile.window_us),
                        part.kind == OutsideKind::kNeither ? "no op or annotation of its thread"
                                                           : Printable(part.name));
  }
  if (others > 0)
    line += fmt::format("{} {} in {}", shown == 0 ? "" : ",",
                        PartText(HumanMicroseconds(others_us), others_us, profile.window_us),
                        shown == 0 ? Count(others, "part") : Count(others, "other"));
  PrintWrapped(line, 2, 4);
}

void PrintProfiles(const CostAnswer& answer, CostBy by) {
  const std::size_t common = CommonDirectory(answer.profiles);
  const bool has_launches = HasLaunches(answer);
  for (const CostProfile& profile : answer.profiles) {
    std::string line =
        answer.profiles.size() > 1 ? Printable(profile.path.substr(common)) + ": " : std::string();
    if (has_launches && profile.launch) line += fmt::format("launch {}: ", *profile.launch);
    if (profile.rank) line += fmt::format("rank {}: ", *profile.rank);
    line += fmt::format(
        "{}{}", HumanMicroseconds(profile.window_us),
        profile.steps > 0
            ? fmt::format(" in {}", Count(static_cast<std::size_t>(profile.steps), "step"))
            : std::string(" in all (no steps are marked)"));
    const auto part = [&](double us) {
      return PartText(HumanMicroseconds(us), us, std::max(profile.window_us, 1e-9));
    };
    line += fmt::format(": {} in calls of compiled graphs on the CPU, ", part(profile.compiled_us));
    line += profile.unmarked_us > 0
                ? fmt::format("{} in kernels of Inductor without such a call, {} in neither",
                              part(profile.unmarked_us), part(profile.outside_us))
                : fmt::format("{} outside", part(profile.outside_us));
    PrintLine(line, 0);
    PrintOutside(profile);
    PrintCompileTime(profile);
    PrintKernels(profile, by);
    for (const std::string& problem : profile.problems) {
      // A message about compressed data names the file, and says itself what was read.
      PrintLine(problem.starts_with(profile.path + ": ")
                    ? problem
                    : fmt::format("not all of {} is counted: {}", profile.path, problem),
                2);
    }
  }
  for (const std::string& note : answer.notes) PrintLine(note, 0);
}

std::string KernelName(const CostRow& row) {
  return row.debug_handle ? fmt::format("{}:{}", row.name, *row.debug_handle) : row.name;
}

// The first letters tell keys apart; --json has all of it.
std::string ShortKey(const std::string& key) {
  constexpr std::size_t kShown = 10;
  return key.size() <= kShown ? key : key.substr(0, kShown) + "…";
}

// What the shares are of, and how a fused kernel's time is divided.
void PrintShare(const CostAnswer& answer, CostBy by) {
  double total_us = 0;
  for (const CostRow& row : answer.rows) total_us += row.share_us;
  std::string text =
      fmt::format("share: of {} {}", HumanMicroseconds(total_us), NameOf(answer.time).heading);
  if (by == CostBy::kLine)
    text +=
        "; that of a kernel of several lines is divided by the number of its nodes on each, or of "
        "its stacks where not all nodes have a line";
  if (by == CostBy::kNode) text += "; that of a kernel of several nodes is divided evenly";
  PrintWrapped(text, 0, 2);
}

// What the table has besides the columns of its question.
struct CostColumns {
  CostBy by;
  bool has_cpu;  // the column before it is then of the device
  bool has_graphs;
  bool has_launches;  // several
  bool has_ranks;
  bool has_bytes;  // of some row
};

CostColumns ColumnsOf(const CostAnswer& answer, CostBy by) {
  CostColumns columns{by, false, false, false, false, false};
  columns.has_cpu = answer.time == CostTime::kOpsOnDevice ||
                    (by == CostBy::kModule && answer.time == CostTime::kKernels);
  columns.has_graphs = by != CostBy::kLine && by != CostBy::kOp && by != CostBy::kModule;
  columns.has_launches = columns.has_graphs && HasLaunches(answer);
  columns.has_ranks =
      columns.has_graphs && std::any_of(answer.rows.begin(), answer.rows.end(),
                                        [](const CostRow& row) { return !!row.rank; });
  columns.has_bytes = std::any_of(answer.rows.begin(), answer.rows.end(),
                                  [](const CostRow& row) { return !!row.peak_bytes; });
  return columns;
}

std::vector<Table::Column> CostHeadings(const CostColumns& columns, std::string_view time) {
  using Align = Table::Align;
  const CostBy by = columns.by;
  std::vector<Table::Column> headings = ShareHeadings(time);
  const auto add = [&](std::string heading, Align align = Align::kLeft, int expendable = 0) {
    const bool is_place = heading == "line" || heading == "lines";
    headings.push_back({std::move(heading), align, expendable, is_place});
  };
  if (by == CostBy::kLine || by == CostBy::kNode) add("inclusive", Align::kRight);
  if (columns.has_cpu) add("CPU time", Align::kRight);
  if (by == CostBy::kOp) add("with ops inside", Align::kRight);
  if (by == CostBy::kModule) add("with modules inside", Align::kRight);
  add("calls", Align::kRight);
  if (by == CostBy::kKernel) add("mean", Align::kRight, 1), add("estimated", Align::kRight, 2);
  if (by == CostBy::kGraph) add("device", Align::kRight, 1), add("compile", Align::kRight, 2);
  if (columns.has_bytes) add("at peak", Align::kRight);
  if (columns.has_launches) add("launch", Align::kRight);
  if (columns.has_ranks) add("rank", Align::kRight);
  if (columns.has_graphs) add("compile id"), add("graph");
  if (by == CostBy::kGraph) add("key", Align::kLeft, 3);
  if (by == CostBy::kLine) add("line"), add("code");
  if (by == CostBy::kKernel) add("kernel"), add("lines");
  if (by == CostBy::kNode) add("node");
  if (by == CostBy::kGraph) add("function");
  if (by == CostBy::kOp) add("op");
  if (by == CostBy::kModule) add("module");
  return headings;
}

// Names of C++ templates take thousands of characters: --json has all of them.
constexpr std::size_t kLongestName = 72;
constexpr std::size_t kLongestText = 120;

std::string LabelOf(const CostRow& row) {
  return CompileLabel(row.label, row.generation.value_or(0));
}

// "(no line known: 0/0 backward)"
std::string UnknownLine(const CostRow& row) {
  if (!row.label.empty())
    return fmt::format("(no line known: {}{}{})", LabelOf(row), row.direction.empty() ? "" : " ",
                       row.direction);
  return row.join_note.empty() ? "(no line known)"
                               : fmt::format("(no line known: {})", row.join_note);
}

// What the row is about: the last cells of its line.
void AddSubject(const CostRow& row, CostBy by, std::vector<std::string>& cells) {
  switch (by) {
    case CostBy::kLine:
      cells.push_back(row.file.empty() ? UnknownLine(row)
                                       : fmt::format("{}:{}", row.file, row.line.value_or(0)));
      cells.push_back(Shorten(row.name, kLongestText));
      break;
    case CostBy::kKernel:
      cells.push_back(ShortenMiddle(KernelName(row), kLongestName));
      cells.push_back(row.kernel_id ? Shorten(row.lines, kLongestText)
                                    : fmt::format("({})", row.join_note));
      break;
    case CostBy::kNode:
      cells.push_back(row.name.empty() ? "(no node known)" : row.name);
      break;
    case CostBy::kModule:
      cells.push_back(row.name.empty() ? "(no module was open)" : row.name);
      break;
    case CostBy::kGraph:
    case CostBy::kOp:  // kernels that no op enqueued: the reason
      cells.push_back(!row.name.empty()       ? ShortenMiddle(row.name, kLongestText)
                      : row.join_note.empty() ? std::string()
                                              : fmt::format("({})", row.join_note));
      break;
  }
}

std::vector<std::string> CostCells(const CostRow& row, const CostColumns& columns) {
  const CostBy by = columns.by;
  std::vector<std::string> cells = {Percent(row.share), HumanMicroseconds(row.share_us)};
  const bool is_of_none = (by == CostBy::kModule || by == CostBy::kOp) && row.name.empty();
  if (columns.has_cpu) cells.push_back(OptionalUs(row.cpu_us));
  if (by == CostBy::kLine || by == CostBy::kNode || by == CostBy::kOp || by == CostBy::kModule)
    cells.push_back(is_of_none && by == CostBy::kOp ? std::string()
                                                    : HumanMicroseconds(row.inclusive_us));
  cells.push_back(is_of_none ? std::string() : std::to_string(row.calls));
  if (by == CostBy::kKernel) {
    cells.push_back(HumanMicroseconds(row.inclusive_us /
                                      static_cast<double>(std::max<std::int64_t>(row.calls, 1))));
    cells.push_back(OptionalUs(row.estimated_us));
  }
  if (by == CostBy::kGraph)
    cells.push_back(OptionalUs(row.device_us)), cells.push_back(OptionalUs(row.compile_us));
  if (columns.has_bytes) cells.push_back(row.peak_bytes ? HumanBytes(*row.peak_bytes) : "");
  if (columns.has_launches)
    cells.push_back(row.launch ? std::to_string(*row.launch) : std::string());
  if (columns.has_ranks) cells.push_back(row.rank ? std::to_string(*row.rank) : std::string());
  if (columns.has_graphs) {
    cells.push_back(LabelOf(row));
    cells.push_back(row.direction);
  }
  if (by == CostBy::kGraph) cells.push_back(ShortKey(row.key));
  AddSubject(row, by, cells);
  return cells;
}

void PrintRows(const CostAnswer& answer, CostBy by, std::size_t top) {
  const CostColumns columns = ColumnsOf(answer, by);
  Table table(CostHeadings(columns, NameOf(answer.time).heading));
  AddShares(table, answer.rows, top, [&](const CostRow& row) { return CostCells(row, columns); });
  std::fputc('\n', stdout);
  if (table.empty()) {
    std::printf("no %s is in these profiles\n", by == CostBy::kGraph ? "call of a compiled graph"
                                                : by == CostBy::kOp  ? "op"
                                                                     : "kernel");
    return;
  }
  PrintShare(answer, by);
  table.Print();
  for (std::size_t i = 0; by == CostBy::kGraph && i < std::min(top, answer.rows.size()); ++i) {
    const CostRow& row = answer.rows[i];
    if (!row.name.empty() && !row.join_note.empty())
      PrintWrapped(fmt::format("{} {}: {}", row.label, row.direction, row.join_note), 0, 2);
  }
  PrintMore(answer.rows.size(), top);
}

// Of programs that compile nothing only ops are known.
bool IsEager(const CostAnswer& answer) {
  return std::all_of(answer.profiles.begin(), answer.profiles.end(), [](const CostProfile& one) {
    return one.kernel_us.value_or(0) == 0 && one.compiled_us == 0 && one.unmarked_us == 0;
  });
}

}  // namespace

int RunCost(std::span<const std::string> arguments) {
  Arguments app(
      "Where the time of the profiled steps went, by Python line, kernel, graph node, graph, op or "
      "module; how much of it is outside compiled graphs, how long devices were idle. A kernel "
      "that fuses several lines: 'inclusive' gives each of them all of its time, 'kernel time' and "
      "'share' divide it. Rows are sorted by share. The heading names the time that is shared: of "
      "ops and modules, kernel time if any kernel ran on a device, else CPU time. A kernel "
      "belongs to the module that was open where and when it was enqueued; kernels of a backward "
      "belong to none. With a snapshot of the allocator or memory events: 'at peak', the bytes "
      "that were alive at the peak (tlparse memory).",
      "cost");
  AnswerArguments common;
  CostOptions options;
  std::string by = "line";
  std::optional<std::string> run, steps;
  int top = 30;
  AddAnswerArguments(app, common);
  Arguments::Option asked =
      app.Add("--by", by,
              "line, kernel, node, graph, op or module (default: op where no kernel and no call of "
              "a compiled graph was recorded, else line)");
  asked.OneOf(NamesOf(kQuestions));
  AddAsked(app, options.asked);
  app.Add("--steps", steps,
          "only these steps of the profiler, like 3-5 (default: all marked ones)");
  Arguments::Option most = app.Add("--top", top, "maximum number of rows");
  most.Positive().ShowDefault();
  app.Add("--run", run, "the run of this name (default: the latest)");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  options.by = ValueOf(kQuestions, by);
  if (steps && !ParseSteps(*steps, options.first_step, options.last_step)) return kExitUsage;
  const auto answer_from = [&](Database& database) -> Result<void> {
    ASSIGN_OR_RETURN(options.run_id, FindRun(database, run.value_or("")));
    RETURN_IF_ERROR(CheckAsked(database, options.asked, options.run_id, {}));
    ASSIGN_OR_RETURN(CostAnswer answer, Cost(database, options));
    if (!asked.WasGiven() && IsEager(answer)) {
      options.by = CostBy::kOp;
      by = "op";
      ASSIGN_OR_RETURN(answer, Cost(database, options));
    }
    const auto count = static_cast<std::size_t>(top);
    if (common.json) {
      PrintJson(CostJson(answer, by, count));
      return {};
    }
    PrintBounded(most.WasGiven(), "--top", [&] {
      PrintProfiles(answer, options.by);
      PrintRows(answer, options.by, count);
    });
    return {};
  };
  return AnswerFrom(common.database, answer_from);
}

}  // namespace tlparse
