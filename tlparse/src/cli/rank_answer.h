// Shared by the commands that answer about the ranks of one run: --run, --launch, --rank, --process,
// --all, --json, the database; then the call of the analysis, and the output.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cli/answer.h"
#include "cli/answer_input.h"
#include "cli/bounded_output.h"
#include "cli/command.h"
#include "cli/finding_output.h"
#include "cli/rank_fields.h"
#include "cli/rank_output.h"
#include "facts/job/asked_participant.h"
#include "facts/job/read_transaction.h"
#include "facts/ranks/asked_part.h"
#include "facts/ranks/ranks.h"
#include "findings/context.h"
#include "findings/findings.h"

namespace tlparse {

// What is asked of, and what of the answer is left then: KeepAsked's sentence.
struct AskedPart {
  AskedParticipant asked = {};
  std::string only = {};
};
inline void PrintHeading(std::string_view text, const AskedPart& part) {
  PrintHeading(text);
  if (!part.only.empty()) PrintWrapped(part.only, 0, 2);
}

// `app` has the options of the command itself. `run`, `launch` and `part.asked` are set before
// `analyze(database, is_json)` is called; its answer goes to `to_json(answer)` or
// `print(answer, all)`. Returns the exit code.
template <typename Analyze, typename ToJson, typename Print>
int RunRankAnswer(Arguments& app, std::span<const std::string> arguments,
                  const std::string& help_of_all, std::string& run,
                  std::optional<std::int64_t>& launch, AskedPart& part, const Analyze& analyze,
                  const ToJson& to_json, const Print& print) {
  AnswerArguments common;
  bool all = false;
  AddAnswerArguments(app, common);
  app.Add("--run", run, "the run of this name (default: the latest)");
  app.Add("--launch", launch, "this launch (1 is the first; default: the latest)").Positive();
  AddAsked(app, part.asked);
  app.Flag("--all", all, help_of_all);
  if (const std::optional<int> code = app.Parse(arguments)) return *code;
  Result<Database> database = OpenAskedDatabase(common.database);
  if (!database) return ReportError(database.error());
  const Result<void> is_there = CheckAskedOfLaunch(*database, part.asked, run, launch);
  if (!is_there) return ReportError(is_there.error());
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

// The finding of this title, or evidence of one; null: there is none.
inline const Finding* FindingOfTitle(const std::vector<Finding>& findings, std::string_view title) {
  for (const Finding& one : findings) {
    if (one.title == title) return &one;
    if (const Finding* const found = FindingOfTitle(one.evidence, title)) return found;
  }
  return nullptr;
}

// An answer that prints problems says of them what the findings say: those join more of the inputs.
template <typename Answer>
constexpr bool kHasProblems = requires(Answer answer) {
  answer.problems;
};

template <typename Answer>
void SayAsFindings(const std::vector<Finding>& findings, Answer& answer) {
  if constexpr (kHasProblems<Answer>) {
    for (auto& problem : answer.problems) {
      const Finding* const found = FindingOfTitle(findings, problem.title);
      if (found == nullptr) continue;
      problem.severity = found->severity;
      problem.detail = found->detail;
      problem.advice = found->suggestion;
    }
  }
}

// RunRankAnswer for an answer whose JSON also holds the findings that concern the kinds `subject`.
// They are made of the answer about ranks, of which `take(database, options, ranks)` takes this one
// then; without them it is `analyze(database, options)`. KeepAsked cuts it
// down then. Its fields get WithFindings.
template <typename Options, typename Analyze, typename Take, typename Print>
int RunSubjectAnswer(Arguments& app, std::span<const std::string> arguments,
                     const std::string& help_of_all, Options& options,
                     std::span<const FindingKind> subject, const Analyze& analyze, const Take& take,
                     const Print& print) {
  std::vector<Finding> findings;
  AskedPart part;
  bool without_findings = false;
  AddWithoutFindings(app, without_findings);
  using Answered = std::invoke_result_t<const Analyze&, Database&, const Options&>;
  const auto analyze_all = [&](Database& database, bool is_json) -> Answered {
    ASSIGN_OR_RETURN(const ReadTransaction transaction, ReadTransaction::Begin(database));
    const bool is_said = is_json || kHasProblems<typename Answered::value_type>;
    if (is_said && !without_findings) {
      FindingsOptions of_findings;
      of_findings.run = options.run;
      of_findings.launch = options.launch;
      Result<RanksAnswer> ranks =
          AnalyzeRanks(database, {.run = options.run, .launch = options.launch});
      ASSIGN_OR_RETURN(findings, ranks ? FindFindings(database, of_findings, *ranks)
                                       : FindFindings(database, of_findings));
      std::erase_if(findings, [&](const Finding& one) { return !Concerns(one, subject); });
      Answered answer =
          ranks ? take(database, options, *std::move(ranks)) : analyze(database, options);
      if (answer) SayAsFindings(findings, *answer);
      RETURN_IF_ERROR(KeepNamed(database, part.asked, options.run, options.launch, findings));
      return answer;
    }
    return analyze(database, options);
  };
  const auto analyze_part = [&](Database& database, bool is_json) -> Answered {
    ASSIGN_OR_RETURN(auto answer, analyze_all(database, is_json));
    ASSIGN_OR_RETURN(part.only, KeepAsked(database, part.asked, answer));
    return answer;
  };
  return RunRankAnswer(
      app, arguments, help_of_all, options.run, options.launch, part, analyze_part,
      [&](const auto& answer) {
        return ToJson(answer, WithFindings<std::remove_cvref_t<decltype(answer)>>{
                                  answer, answer.job, findings, part.only});
      },
      [&](const auto& answer, bool all) { print(answer, all, part); });
}

}  // namespace tlparse
