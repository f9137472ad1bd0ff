#include "answers/experiment/outcome.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_writer.h"
#include "facts/compiles/exceptions.h"
#include "facts/job/participants.h"
#include "facts/text/shorten.h"
#include "queries/answers/experiment/outcome.h"

namespace tlparse {
namespace {

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The same cause, though what is said of it may have changed with the run: the id holds the values
// that varied.
bool IsSameCause(const Finding& a, const Finding& b) {
  if (a.id == b.id) return true;
  const bool has_place = a.place && b.place;
  return a.kind == b.kind && !a.function.empty() && a.function == b.function &&
         has_place == (a.place || b.place) &&
         (!has_place ||
          (a.place->line == b.place->line && FileName(a.place->file) == FileName(b.place->file)));
}

}  // namespace

const Finding* FindSameCause(const std::vector<Finding>& findings, const Finding& wanted) {
  for (const Finding& one : findings) {
    if (IsSameCause(one, wanted)) return &one;
    if (const Finding* found = FindSameCause(one.evidence, wanted)) return found;
  }
  return nullptr;
}

namespace {

std::vector<const Finding*> NewOnes(const RunOutcome& base, const RunOutcome& changed) {
  std::vector<const Finding*> found;
  for (const Finding& one : changed.findings) {
    if (one.severity == FindingSeverity::kNote) continue;
    const Finding* const before = FindSameCause(base.findings, one);
    if (before == nullptr || before->severity == FindingSeverity::kNote) found.push_back(&one);
  }
  return found;
}

// Another finding of its kind and function, at a place where the base run had none: the change has moved
// it. nullptr: there is none.
const Finding* MovedTo(const Finding& finding, const RunOutcome& base, const RunOutcome& changed) {
  for (const Finding& one : changed.findings) {
    if (one.kind == finding.kind && !one.function.empty() && one.function == finding.function &&
        FindSameCause(base.findings, one) == nullptr)
      return &one;
  }
  return nullptr;
}

Judgement Inconclusive(std::string reason) {
  return {ExperimentVerdict::kInconclusive, std::move(reason), {}};
}

std::string Quoted(const Finding& finding) { return Shorten(finding.title, 160); }

// ": Process 7 raised KeyError: 'x'" behind the exit code of the command; empty: it ended well, or it is
// not known how.
std::string EndOf(const RunOutcome& run) {
  const auto crash = std::find_if(run.findings.begin(), run.findings.end(), [](const Finding& one) {
    return one.kind == FindingKind::kCrashed;
  });
  const int code = run.exit_code.value_or(0);
  if (code == 0) return "";
  const bool is_more =
      crash != run.findings.end() && !crash->title.starts_with("The command ended");
  return fmt::format(", and the command ended with exit code {}{}", code,
                     is_more ? ": " + Quoted(*crash) : "");
}

Result<std::int64_t> CountCompiles(Database& database, const RunOutcome& outcome,
                                   const std::string& function) {
  ASSIGN_OR_RETURN(
      const FirstRow<CompilesOfFunction> row,
      First(Query<CompilesOfFunction>(database, {.run_id = outcome.run_id, .function = function})));
  return row ? row->count : 0;
}

// A break of a function that is compiled as one graph is an error: where it comes says whether the line
// of the finding ends the graph.
Result<Judgement> JudgeFullgraph(Database& database, const Finding& finding,
                                 const std::string& function, const RunOutcome& changed) {
  ASSIGN_OR_RETURN(
      const FirstRow<FailureOfFunction> failure,
      First(Query<FailureOfFunction>(database, {.run_id = changed.run_id, .function = function})));
  if (!failure) {
    ASSIGN_OR_RETURN(const std::int64_t count, CountCompiles(database, changed, function));
    if (count == 0)
      return Inconclusive(fmt::format("the new run did not compile {}", Shorten(function, 80)));
    return Judgement{
        ExperimentVerdict::kRefuted,
        fmt::format("{} was compiled as one graph, and no line ended it", Shorten(function, 80)),
        {}};
  }
  const std::string error = Shorten(CauseOfException(failure->type, failure->reason), 200);
  const std::string place =
      fmt::format("{}:{}", FileName(failure->file), failure->line.value_or(0));
  const bool is_there = finding.place && failure->line == finding.place->line &&
                        FileName(failure->file) == FileName(finding.place->file);
  if (!is_there)
    return Judgement{
        ExperimentVerdict::kChanged,
        fmt::format("as one graph, {} fails at another line, {}, and what comes after it was not "
                    "traced: {}",
                    Shorten(function, 80), place, error),
        {}};
  return Judgement{
      ExperimentVerdict::kConfirmed,
      fmt::format(
          "as one graph, {} fails at this line, {}: {}. What comes after it was not traced, "
          "and what the break costs was not measured",
          Shorten(function, 80), place, error),
      {}};
}

}  // namespace

Result<std::optional<RecordedCommand>> LoadCommand(Database& database, std::int64_t run_id) {
  ASSIGN_OR_RETURN(const FirstRow<CommandOfRun> row,
                   First(Query<CommandOfRun>(database, {.run_id = run_id})));
  if (!row || row->command.empty()) return std::nullopt;
  RecordedCommand recorded;
  recorded.directory = row->directory;
  FOR_EACH_ROW(const WordOfCommand& one,
               Query<WordOfCommand>(database, {.command = row->command})) {
    recorded.words.emplace_back(one.word);
  }
  if (recorded.words.empty()) return std::nullopt;
  FOR_EACH_ROW(const VariableOfCommand& one,
               Query<VariableOfCommand>(
                   database, {.environment = row->environment.empty() ? "{}" : row->environment,
                              .recorded = row->recorded.empty() ? "{}" : row->recorded})) {
    recorded.variables.push_back(fmt::format("{}={}", one.name, one.value));
  }
  return recorded;
}

Result<RunOutcome> LoadOutcome(Database& database, const std::string& run_name) {
  RunOutcome outcome;
  ASSIGN_OR_RETURN(outcome.run_id, FindRun(database, run_name));
  ASSIGN_OR_RETURN(const FirstRow<CompileTimeOfRun> compiles,
                   First(Query<CompileTimeOfRun>(database, {.run_id = outcome.run_id})));
  if (compiles) {
    outcome.processes = compiles->processes;
    outcome.ranks = compiles->ranks;
    outcome.compile_us = compiles->longest_us;
  }
  ASSIGN_OR_RETURN(const FirstRow<HitsOfRun> hits,
                   First(Query<HitsOfRun>(database, {.run_id = outcome.run_id})));
  outcome.cache_hits = hits->count;
  ASSIGN_OR_RETURN(const FirstRow<CommandOfRun> command,
                   First(Query<CommandOfRun>(database, {.run_id = outcome.run_id})));
  if (command) {
    if (command->exit_code) outcome.exit_code = static_cast<int>(*command->exit_code);
    if (command->started_us && command->ended_us)
      outcome.command_us = *command->ended_us - *command->started_us;
  }
  std::vector<std::int64_t> steps_ns;
  FOR_EACH_ROW(const StepOfRun& step, Query<StepOfRun>(database, {.run_id = outcome.run_id})) {
    steps_ns.push_back(step.duration_ns);
  }
  if (!steps_ns.empty()) outcome.step_us = steps_ns[steps_ns.size() / 2] / 1000;
  FindingsOptions options;
  options.run = run_name;
  Result<std::vector<Finding>> findings = FindFindings(database, options);
  // A run without logs may have nothing to look at.
  if (!findings && outcome.processes > 0) return tl::unexpected<Error>(findings.error());
  if (findings) outcome.findings = std::move(*findings);
  return outcome;
}

Result<Judgement> Judge(Database& database, const Finding& finding, const RunOutcome& base,
                        const RunOutcome& changed, const std::vector<Change>& unmade) {
  if (changed.processes == 0)
    return Inconclusive("the new run's processes logged no compile" + EndOf(changed));
  if (!unmade.empty())
    return Inconclusive(
        fmt::format("no process of the new run made this change: {}", TextOf(unmade)));
  if (const Change* whole = FindChange(finding.changes, ChangeKind::kFullgraph))
    return JudgeFullgraph(database, finding, whole->function, changed);
  const Finding* const same = FindSameCause(changed.findings, finding);
  if (same != nullptr && same->severity <= finding.severity)
    return Judgement{ExperimentVerdict::kRefuted,
                     fmt::format("the finding is still there: {}", Quoted(*same)),
                     {}};
  const std::vector<const Finding*> came = NewOnes(base, changed);
  const int code = changed.exit_code.value_or(0);
  const bool has_only_failed = code != 0 && code != base.exit_code.value_or(0) &&
                               std::all_of(came.begin(), came.end(), [](const Finding* one) {
                                 return one->kind == FindingKind::kCrashed;
                               });
  if (has_only_failed) return Inconclusive("the finding is not there" + EndOf(changed));
  if (!came.empty() || same != nullptr) {
    Judgement judgement{ExperimentVerdict::kChanged, {}, {}};
    for (const Finding* one : came) judgement.came.push_back(one->id);
    judgement.reason =
        came.empty() ? fmt::format("only a note of it is left: {}", Quoted(*same))
        : came.size() == 1
            ? fmt::format("the finding is gone, but another came: {}", Quoted(*came.front()))
            : fmt::format("the finding is gone, but {} others came: {}", came.size(),
                          Quoted(*came.front()));
    return judgement;
  }
  if (const Finding* const moved = MovedTo(finding, base, changed))
    return Judgement{
        ExperimentVerdict::kChanged,
        fmt::format("the finding is gone, but there is another of its kind: {}", Quoted(*moved)),
        {moved->id}};
  if (changed.ranks < base.ranks)
    return Inconclusive(fmt::format("the finding is not there, but the new run has {} of {} ranks",
                                    changed.ranks, base.ranks));
  if (!finding.function.empty()) {
    ASSIGN_OR_RETURN(const std::int64_t before, CountCompiles(database, base, finding.function));
    ASSIGN_OR_RETURN(const std::int64_t after, CountCompiles(database, changed, finding.function));
    if (before > 0 && after == 0)
      return Inconclusive(
          fmt::format("the new run did not compile {}", Shorten(finding.function, 80)));
  }
  std::string reason = "the finding is gone, and none above a note came";
  if (FindChange(finding.changes, ChangeKind::kBackend) != nullptr)
    reason += ": what failed is part of the backend that was left out";
  return Judgement{ExperimentVerdict::kConfirmed, std::move(reason), {}};
}

Result<std::int64_t> AddExperiment(Database& database, const Experiment& experiment,
                                   const RunOutcome& before, const RunOutcome* changed,
                                   const Judgement& judgement) {
  const auto list = [](const std::vector<std::string>& texts) {
    JsonWriter json;
    json.BeginArray();
    for (const std::string& text : texts) json.String(text);
    json.EndArray();
    return json.Take();
  };
  JsonWriter changes;
  WriteChanges(changes, experiment.changes);
  std::optional<std::int64_t> run_id, compile_us, step_us, command_us;
  if (changed != nullptr) {
    run_id = changed->run_id;
    compile_us = changed->compile_us;
    step_us = changed->step_us;
    command_us = changed->command_us;
  }
  RETURN_IF_ERROR(Execute<AddExperimentRow>(database, {.finding_id = experiment.finding_id,
                                                       .base_run_id = experiment.base_run_id,
                                                       .run_id = run_id,
                                                       .change = changes.text(),
                                                       .verdict = judgement.verdict,
                                                       .reason = judgement.reason,
                                                       .command = list(experiment.command),
                                                       .directory = experiment.directory,
                                                       .started_us = experiment.started_us,
                                                       .base_compile_us = before.compile_us,
                                                       .compile_us = compile_us,
                                                       .base_step_us = before.step_us,
                                                       .step_us = step_us,
                                                       .base_command_us = before.command_us,
                                                       .command_us = command_us,
                                                       .came = list(judgement.came)}));
  return database.QueryInt("SELECT max(id) FROM experiment");
}

}  // namespace tlparse
