// tlparse diff A B: what changed between two runs, or two ranks.
#include <algorithm>
#include <cstdio>

#include "cli/answer.h"
#include "cli/answer_input.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/diff_output.h"
#include "facts/diff/diff_runs.h"
#include "report/finding_text.h"

namespace tlparse {
namespace {

std::optional<Error> UsageProblem(const std::vector<std::string>& inputs,
                                  const std::vector<std::string>& ranks,
                                  const std::vector<std::string>& launches) {
  if (inputs.size() == 1 && ranks.size() != 2 && launches.size() != 2)
    return Error(
        {ErrorCode::kUsage, "diff needs two sides, or one and two --rank or two --launch"});
  if (ranks.size() > 2 || launches.size() > 2)
    return Error({ErrorCode::kUsage,
                  "diff compares two sides: --rank and --launch may be given twice at most"});
  for (const std::string& launch : launches) {
    if (launch.empty() || launch.size() > 9 ||
        launch.find_first_not_of("0123456789") != std::string::npos)
      return Error({ErrorCode::kUsage, "--launch: '" + launch + "' is not a number"});
  }
  return std::nullopt;
}

struct DiffForm {
  bool is_json = false, is_markdown = false;
  bool all = false, is_whole = false;  // every guard and kernel; a text of any length
};

void Print(const RunComparison& answer, const DiffForm& form) {
  const auto print = [&] { PrintDiff(answer, form.all); };
  if (form.is_json) {
    PrintJson(DiffJson(answer));
  } else if (form.is_markdown) {
    const std::string text = Captured(print);
    std::fputs(
        MarkdownBlock(form.is_whole ? text : FirstLines(text, kMostAnswerText, "--all")).c_str(),
        stdout);
  } else {
    PrintBounded(form.is_whole, "--all", print);
  }
}

}  // namespace

int RunDiff(std::span<const std::string> arguments) {
  Arguments app(
      "What changed between two runs: compile time by phase, recompiles, graph breaks, caches and "
      "why, guards, kernels, code; with profiles on both sides the lines and kernels that got "
      "slower (of runs without logs the kernels and ops, by name and shapes); with hashes of runs "
      "(libtrace_run_digest) whether the results are equal; with snapshots of the allocator or "
      "memory events of profiles what holds more at the peak. Each side "
      "is a database, DB:run, an output directory, a log or a directory of logs.",
      "diff");
  std::vector<std::string> inputs, ranks, launches;
  DiffOptions options;
  bool as_json = false, is_markdown = false, all = false;
  app.Add("inputs", inputs, "the two sides; one, if two --rank name them").Required().Times(1, 2);
  app.Add("--rank", ranks,
          "the rank of each side (default: one of each class of equal ranks); twice for two ranks "
          "of one run")
      .OneValueEach();
  app.Add(
      "--launch", launches,
      "the launch of each side (default: the latest); twice, or as 1 2, for two launches of one "
      "run");
  app.Flag("--code", options.with_code, "unified diffs of the generated codes");
  app.Flag("--all", all, "every guard and kernel");
  app.Flag("--markdown", is_markdown, "Markdown, for a comment of a forge");
  app.Flag("--json", as_json, "JSON (schemas/json/answers/diff.schema.json)");
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  if (const std::optional<Error> problem = UsageProblem(inputs, ranks, launches))
    return ReportError(*problem);
  Result<AnswerInput> a = OpenAnswerInput(inputs.front());
  if (!a) return ReportError(a.error());
  const auto rank = [&](std::size_t side) {
    return ranks.empty() ? std::nullopt : std::optional(ranks[std::min(side, ranks.size() - 1)]);
  };
  const auto launch = [&](std::size_t side) {
    return launches.empty() ? std::nullopt
                            : std::optional<std::int64_t>(
                                  std::stoll(launches[std::min(side, launches.size() - 1)]));
  };
  Result<RunComparison> answer = Fail(ErrorCode::kInternal, "nothing compared");
  if (inputs.size() == 1) {
    answer = AnalyzeRunDiff({&a->database, a->run, rank(0), launch(0)},
                            {&a->database, a->run, rank(1), launch(1)}, options);
  } else {
    Result<AnswerInput> b = OpenAnswerInput(inputs.back());
    if (!b) return ReportError(b.error());
    answer = AnalyzeRunDiff({&a->database, a->run, rank(0), launch(0)},
                            {&b->database, b->run, rank(1), launch(1)}, options);
  }
  if (!answer) return ReportError(answer.error());
  Print(*answer, {as_json, is_markdown, all, all || options.with_code});
  return kExitDone;
}

}  // namespace tlparse
