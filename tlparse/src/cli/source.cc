// tlparse source <db> FILE[:LINE]: what came of a line of Python.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "answers/source/line_outcomes.h"
#include "base/fields.h"
#include "cli/answer.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/only_field.h"
#include "cli/rank_output.h"
#include "cli/schemas.h"
#include "facts/compiles/user_frames.h"
#include "facts/job/participants.h"
#include "facts/text/shorten.h"

namespace tlparse {
namespace {

struct SourceArguments {
  AnswerArguments common;
  std::string place;
  std::optional<std::string> run;
  AskedParticipant who;
  bool all = false, stack = false;
};

std::string WordsOf(LineOutcomeKind kind) {
  std::string words(Name(kind));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string TextOfOutcome(const LineOutcome& one) {
  if (one.count == 1) return Shorten(one.text, 120);
  return fmt::format("{} and {} more", Shorten(one.text, 120), one.count - 1);
}

// Compiles of one function in which the same came of a line.
struct FoldedOutcome {
  LineOutcome first;
  std::vector<std::string> labels;
};

std::vector<FoldedOutcome> FoldCompiles(const std::vector<LineOutcome>& outcomes) {
  std::vector<FoldedOutcome> folded;
  for (const LineOutcome& one : outcomes) {
    const auto same = std::find_if(folded.rbegin(), folded.rend(), [&](const FoldedOutcome& other) {
      const LineOutcome& first = other.first;
      return std::tie(first.line, first.kind, first.direction, first.function, first.text,
                      first.count, first.ranks) == std::tie(one.line, one.kind, one.direction,
                                                            one.function, one.text, one.count,
                                                            one.ranks);
    });
    if (same == folded.rend())
      folded.push_back({one, {one.label}});
    else
      same->labels.push_back(one.label);
  }
  return folded;
}

Result<void> PrintStacks(Database& database, const std::vector<LineOutcome>& outcomes) {
  ShownStacks stacks;
  for (const LineOutcome& one : outcomes) {
    ASSIGN_OR_RETURN(const std::string frames, UserFramesOf(database, one.compile_id));
    stacks.Add(fmt::format("{} {}", one.label, one.function), frames);
    if (one.kind != LineOutcomeKind::kGraphBreak) continue;
    ASSIGN_OR_RETURN(const std::vector<std::string> breaks,
                     UserFramesOfBreaks(database, one.compile_id, one.record_id));
    for (const std::string& of_break : breaks)
      stacks.Add(fmt::format("a graph break in {} {}", one.label, one.function), of_break);
  }
  for (const std::string& stack : stacks.lines()) PrintWrapped(stack, 0, 2);
  return {};
}

Result<void> PrintFile(Database& database, const std::vector<LineOutcome>& outcomes, bool stack) {
  const LineOutcome& first = outcomes.front();
  const bool is_one_line = outcomes.back().line == first.line;
  PrintHeading(is_one_line ? fmt::format("{}:{}", first.file, first.line) : first.file);
  if (is_one_line) {
    std::string code;
    for (auto one = outcomes.begin(); one != outcomes.end() && code.empty(); ++one) {
      ASSIGN_OR_RETURN(code, LoadCodeOfLine(database, one->logged_file, one->line));
    }
    if (!code.empty()) PrintWrapped(code, 4, 4);
  }
  const bool has_ranks = std::any_of(outcomes.begin(), outcomes.end(),
                                     [](const LineOutcome& one) { return !one.ranks.empty(); });
  std::vector<Table::Column> columns;
  if (!is_one_line) columns.push_back({"line", Table::Align::kRight});
  columns.insert(columns.end(), {{"what"}, {"compile"}, {"function"}});
  if (has_ranks) columns.push_back({"ranks"});
  columns.push_back({"which"});
  Table table(columns);
  for (const auto& [one, labels] : FoldCompiles(outcomes)) {
    std::vector<std::string> cells;
    if (!is_one_line) cells.push_back(std::to_string(one.line));
    cells.insert(
        cells.end(),
        {one.direction.empty() ? WordsOf(one.kind) : one.direction + " " + WordsOf(one.kind),
         CompilesText(labels) + (labels.size() > 2 ? fmt::format(" ({})", labels.size()) : ""),
         one.function});
    if (has_ranks) cells.push_back(Shorten(FormatRankRanges(one.ranks), 24));
    cells.push_back(TextOfOutcome(one));
    table.Add(std::move(cells));
  }
  table.Print();
  return stack ? PrintStacks(database, outcomes) : Result<void>();
}

Result<void> PrintOutcomes(Database& database, const std::vector<LineOutcome>& outcomes,
                           bool stack) {
  for (auto begin = outcomes.begin(); begin != outcomes.end();) {
    const auto end = std::find_if(begin, outcomes.end(),
                                  [&](const LineOutcome& one) { return one.file != begin->file; });
    RETURN_IF_ERROR(PrintFile(database, std::vector<LineOutcome>(begin, end), stack));
    begin = end;
  }
  return {};
}

struct SourceAnswer {
  std::span<const LineOutcome> outcomes;
  std::string only;  // with --rank or --process
};

}  // namespace

template <>
struct LastOf<LineOutcomeKind> {
  static constexpr LineOutcomeKind value = LineOutcomeKind::kKernel;
};

template <>
struct FieldsOf<LineOutcome> {
  using Of = LineOutcome;
  static constexpr FieldList list{
      Field{"kind", &Of::kind,
            "function: a compiled function begins here; recompile: by a guard that comes from "
            "here; kernel: the line is innermost in a stack of one of its nodes"},
      Field{"file", &Of::file, "as PyTorch spells it; may be cut at the left"},
      Field{"line", &Of::line},
      Field{"compile", &Of::label, "label"},
      Field{"function", OrNull{&Of::function}, "that was compiled"},
      Field{"direction", OrNull{&Of::direction}, "of a kernel's graph"},
      Field{"ranks", &Of::ranks},
      Field{"text", &Of::text,
            "the compile's status, the cause of a break, the guard, the exception's type, stage "
            "and first node, or the kernel with its handle"},
      Field{"count", &Of::count, "guards or nodes of the line in one compile; else 1"},
      Field{"compile_id", &Of::compile_id, "of the first"},
      Field{"record_id", &Of::record_id, "of the first"},
  };
};

template <>
struct FieldsOf<SourceAnswer> {
  static constexpr std::string_view description =
      "What came of a line of Python, or of each line of a file, by file, line, kind and compile. "
      "null: unknown.";
  static constexpr FieldList list{
      Field{"outcomes", &SourceAnswer::outcomes, "equal ones of several ranks are one"},
      Missable{"only", OrNull{&SourceAnswer::only}, kOnly}};
};

std::string SourceSchema() { return SchemaOf<SourceAnswer>("tlparse source --json"); }

namespace {

// What the others have beyond these.
Result<std::string> OnlyOf(Database& database, std::int64_t run_id, const SourceArguments& asked,
                           std::size_t own) {
  if (!asked.who.IsGiven()) return std::string();
  ASSIGN_OR_RETURN(const std::vector<LineOutcome> all,
                   LoadLineOutcomes(database, run_id, ParsePlace(asked.place), {}));
  return asked.who.Only(all.size() - std::min(own, all.size()), "outcome");
}

Result<void> AnswerSource(Database& database, const SourceArguments& asked) {
  ASSIGN_OR_RETURN(const std::int64_t run_id, FindRun(database, asked.run.value_or("")));
  RETURN_IF_ERROR(CheckAsked(database, asked.who, run_id, {}));
  ASSIGN_OR_RETURN(const std::vector<LineOutcome> outcomes,
                   LoadLineOutcomes(database, run_id, ParsePlace(asked.place), asked.who));
  ASSIGN_OR_RETURN(const std::string only, OnlyOf(database, run_id, asked, outcomes.size()));
  if (asked.common.json) {
    PrintJson(ToJson(SourceAnswer{outcomes, only}));
    return {};
  }
  if (outcomes.empty()) {
    PrintWrapped(fmt::format("no compiled function begins at {0}, and no graph break, recompile, "
                             "failure, guard, graph node or kernel of the run names it",
                             asked.place),
                 0, 2);
    if (!only.empty()) PrintWrapped(only, 0, 2);
    return {};
  }
  Result<void> printed;
  PrintBounded(asked.all, "FILE:LINE, --rank, or --all",
               [&] { printed = PrintOutcomes(database, outcomes, asked.stack); });
  if (!only.empty()) PrintWrapped(only, 0, 2);
  return printed;
}

}  // namespace

int RunSource(std::span<const std::string> arguments) {
  Arguments app(
      "What came of a line of Python, or of each line of a file: compiled functions that begin "
      "there, graph breaks, recompiles by a guard that comes from there, failures, guards, nodes "
      "of graphs, kernels. Equal ones of several ranks share a line.",
      "source");
  SourceArguments asked;
  AddAnswerArguments(app, asked.common);
  app.Add("place", asked.place,
          "FILE:LINE; FILE may be the end of a path; without LINE the whole file")
      .Required();
  AddAsked(app, asked.who);
  app.Add("--run", asked.run, "the run of this name (default: the latest)");
  app.Flag("--all", asked.all, "every row");
  app.Flag("--stack", asked.stack, "with the user's frames that led to each compile");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  return AnswerFrom(asked.common.database,
                    [&](Database& database) { return AnswerSource(database, asked); });
}

}  // namespace tlparse
