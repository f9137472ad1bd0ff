// Shared by the commands that answer about the ranks of one run: --run, --launch, --all, --json,
// the database; then the call of the analysis, and the output.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/answer.h"
#include "cli/answer_input.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/rank_fields.h"
#include "facts/job/read_transaction.h"
#include "facts/ranks/ranks.h"
#include "findings/context.h"
#include "findings/findings.h"

namespace tlparse {

// `app` has the options of the command itself. `run` and `launch` are set before
// `analyze(database, is_json)` is called; its answer goes to `to_json(answer)` or
// `print(answer, all)`. Returns the exit code.
template <typename Analyze, typename ToJson, typename Print>
int RunRankAnswer(Arguments& app, std::span<const std::string> arguments,
                  const std::string& help_of_all, std::string& run,
                  std::optional<std::int64_t>& launch, const Analyze& analyze,
                  const ToJson& to_json, const Print& print) {
  AnswerArguments common;
  bool all = false;
  AddAnswerArguments(app, common);
  app.Add("--run", run, "the run of this name (default: the latest)");
  app.Add("--launch", launch, "this launch (1 is the first; default: the latest)").Positive();
  app.Flag("--all", all, help_of_all);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  Result<Database> database = OpenAskedDatabase(common.database);
  if (!database) return ReportError(database.error());
  const auto answer = analyze(*database, common.json);
  if (!answer) return ReportError(answer.error());
  if (common.json) {
    PrintJson(to_json(*answer));
  } else {
    PrintBounded(all, "--all", [&] { print(*answer, all); });
  }
  return kExitDone;
}

// Findings take longer than the rest of such an answer.
inline void AddWithoutFindings(Arguments& app, bool& without_findings) {
  app.Flag("--no-findings", without_findings,
           "without the findings, which 'tlparse findings' has as well");
}

// Whether it, or evidence of it, is of one of these kinds.
inline bool Concerns(const Finding& finding, std::span<const FindingKind> kinds) {
  return std::find(kinds.begin(), kinds.end(), finding.kind) != kinds.end() ||
         std::any_of(finding.evidence.begin(), finding.evidence.end(),
                     [&](const Finding& one) { return Concerns(one, kinds); });
}

// RunRankAnswer for an answer whose JSON also holds the findings that concern the kinds `subject`.
// They are made of the answer about ranks, of which `take(database, options, ranks)` takes this one
// then; without them it is `analyze(database, options)`. Its fields get WithFindings.
template <typename Options, typename Analyze, typename Take, typename Print>
int RunSubjectAnswer(Arguments& app, std::span<const std::string> arguments,
                     const std::string& help_of_all, Options& options,
                     std::span<const FindingKind> subject, const Analyze& analyze, const Take& take,
                     const Print& print) {
  std::vector<Finding> findings;
  bool without_findings = false;
  AddWithoutFindings(app, without_findings);
  const auto analyze_all = [&](Database& database,
                               bool is_json) -> decltype(analyze(database, options)) {
    ASSIGN_OR_RETURN(const ReadTransaction transaction, ReadTransaction::Begin(database));
    if (is_json && !without_findings) {
      FindingsOptions of_findings;
      of_findings.run = options.run;
      of_findings.launch = options.launch;
      Result<RanksAnswer> ranks =
          AnalyzeRanks(database, {.run = options.run, .launch = options.launch});
      ASSIGN_OR_RETURN(findings, ranks ? FindFindings(database, of_findings, *ranks)
                                       : FindFindings(database, of_findings));
      std::erase_if(findings, [&](const Finding& one) { return !Concerns(one, subject); });
      if (ranks) return take(database, options, *std::move(ranks));
    }
    return analyze(database, options);
  };
  return RunRankAnswer(
      app, arguments, help_of_all, options.run, options.launch, analyze_all,
      [&](const auto& answer) {
        return ToJson(answer, WithFindings<std::remove_cvref_t<decltype(answer)>>{
                                  answer, answer.job, findings});
      },
      print);
}

}  // namespace tlparse
