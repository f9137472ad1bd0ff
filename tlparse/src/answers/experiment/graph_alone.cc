#include "answers/experiment/graph_alone.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/json_writer.h"
#include "facts/job/exits.h"
#include "facts/text/shorten.h"
#include "queries/answers/experiment/graph_alone.h"

namespace tlparse {
namespace {

// The variable that a line of the script sets: os.environ['NAME'] = 'value'; empty: it sets none.
std::string_view VariableOfLine(std::string_view line) {
  constexpr std::string_view kBegin = "os.environ['";
  if (!line.starts_with(kBegin)) return {};
  line.remove_prefix(kBegin.size());
  return line.substr(0, line.find('\''));
}

// Of the recording and the caches of the job: the script would write there.
bool IsOfJob(std::string_view variable) {
  constexpr std::array<std::string_view, 4> kNames = {
      "TORCH_TRACE", "TORCH_LOGS_OUT", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"};
  constexpr std::array<std::string_view, 3> kPrefixes = {"TORCH_FR_", "TORCH_NCCL_",
                                                         "TORCHELASTIC_"};
  return std::find(kNames.begin(), kNames.end(), variable) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

// "torch._inductor.exc.InductorError" → "InductorError".
std::string_view LastName(std::string_view type) { return type.substr(type.rfind('.') + 1); }

std::string TextOfFailure(const FatalException& raised) {
  const std::string_view line =
      std::string_view(raised.message).substr(0, raised.message.find('\n'));
  return fmt::format("{}: {}", LastName(raised.type), line);
}

// The exception that ended the script; empty: none.
Result<std::string> FailureOfRun(Database& database, const RunOutcome& run) {
  ASSIGN_OR_RETURN(const std::vector<ProcessExit> exits, LoadExits(database, run.run_id));
  for (const ProcessExit& one : exits) {
    if (one.raised) return TextOfFailure(*one.raised);
  }
  return std::string();
}

bool IsSame(const std::string& failure, const Finding& finding) {
  // Dynamo puts "backend='inductor' raised:" before it.
  return !failure.empty() && (finding.cause.find(failure) != std::string::npos ||
                              failure.find(finding.cause) != std::string::npos);
}

Judgement FailedOtherwise(const std::string& failure, const RunOutcome& run) {
  if (failure.empty())
    return {ExperimentVerdict::kInconclusive,
            fmt::format("the graph alone ended with exit code {}, and no exception of it is known",
                        run.exit_code.value_or(0)),
            {}};
  return {ExperimentVerdict::kChanged,
          fmt::format("the graph alone fails otherwise: {}", Shorten(failure, 200)),
          {}};
}

}  // namespace

Result<std::string> LoadGraphScript(Database& database, std::int64_t run_id,
                                    const Finding& finding) {
  JsonWriter labels;
  labels.BeginArray();
  for (const std::string& label : finding.compiles) labels.String(label);
  labels.EndArray();
  ASSIGN_OR_RETURN(const FirstRow<ScriptOfCompiles> row,
                   First(Query<ScriptOfCompiles>(
                       database, {.run_id = run_id,
                                  .labels = labels.text(),
                                  .ranks = fmt::format("[{}]", fmt::join(finding.ranks, ","))})));
  if (finding.kind != FindingKind::kCompileFailed || !row)
    return Fail(
        ErrorCode::kNotFound,
        fmt::format("--graph runs the graph of a compile that failed, of which the log holds "
                    "fx_graph_runnable: Inductor had begun it. It has none of this: {}",
                    finding.title));
  std::string script;
  std::string_view rest = row->text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    const std::string_view variable = VariableOfLine(rest.substr(0, end));
    const bool is_changed = std::any_of(finding.changes.begin(), finding.changes.end(),
                                        [&](const Change& one) { return one.name == variable; });
    if (!IsOfJob(variable) && (variable.empty() || !is_changed)) script += rest.substr(0, end);
    rest.remove_prefix(end);
  }
  return script;
}

std::vector<Change> ChangesOfGraph(const std::vector<Change>& changes) {
  const bool has_effect = std::all_of(changes.begin(), changes.end(), [](const Change& one) {
    return one.kind == ChangeKind::kVariable || one.kind == ChangeKind::kNoVariable ||
           (one.kind == ChangeKind::kOption && one.name.starts_with("torch._inductor."));
  });
  return has_effect ? changes : std::vector<Change>();
}

Result<Judgement> JudgeGraph(Database& database, const Finding& finding, const RunOutcome& run) {
  if (run.exit_code == 0)
    return Judgement{ExperimentVerdict::kRefuted,
                     "the graph alone compiles and runs: the failure needs something else of the "
                     "program, such as its own passes or lowerings, or its inputs",
                     {}};
  ASSIGN_OR_RETURN(const std::string failure, FailureOfRun(database, run));
  if (!IsSame(failure, finding)) return FailedOtherwise(failure, run);
  return Judgement{ExperimentVerdict::kConfirmed,
                   fmt::format("the graph alone fails in the same way, without the job: {}",
                               Shorten(failure, 200)),
                   {}};
}

Result<Judgement> JudgeChangedGraph(Database& database, const Finding& finding,
                                    const RunOutcome& run, const std::vector<Change>& unmade) {
  if (!unmade.empty())
    return Judgement{
        ExperimentVerdict::kInconclusive,
        fmt::format("the run of the graph alone did not make this change: {}", TextOf(unmade)),
        {}};
  if (run.exit_code == 0)
    return Judgement{ExperimentVerdict::kConfirmed,
                     "the graph alone fails in the same way, and not with the change; the job was "
                     "not run",
                     {}};
  ASSIGN_OR_RETURN(const std::string failure, FailureOfRun(database, run));
  if (!IsSame(failure, finding)) return FailedOtherwise(failure, run);
  return Judgement{ExperimentVerdict::kRefuted,
                   fmt::format("the graph alone still fails: {}", Shorten(failure, 200)),
                   {}};
}

}  // namespace tlparse
