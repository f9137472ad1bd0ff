// tlparse try <db> <finding> [-- COMMAND …]: run a command again with the change that a finding
// suggests, and say what came of it.
#include <fmt/format.h>

#include <cstdio>

#include "answers/experiment/outcome.h"
#include "cli/answer.h"
#include "cli/arguments.h"
#include "cli/asking.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/experiment_run.h"
#include "cli/rank_output.h"

namespace tlparse {
namespace {

struct TryOptions {
  std::string database, finding;
  std::optional<std::string> output, run;
  std::vector<std::string> command;
  bool yes = false, json = false;
};

struct Planned {
  RunOutcome base;
  Finding finding;
  RecordedCommand command;
};

Result<Planned> Plan(const TryOptions& options) {
  ASSIGN_OR_RETURN(Database database, OpenAnswerDatabase(options.database));
  Planned plan;
  ASSIGN_OR_RETURN(plan.base, LoadOutcome(database, options.run.value_or("")));
  ASSIGN_OR_RETURN(const Finding* const finding,
                   ChooseFinding(plan.base.findings, options.finding));
  plan.finding = *finding;
  if (plan.finding.changes.empty())
    return Fail(ErrorCode::kUsage,
                fmt::format("try: nothing of this finding can be changed from outside of the "
                            "program: {}{}",
                            plan.finding.title,
                            plan.finding.suggestion.empty()
                                ? std::string()
                                : fmt::format(" (try: {})", plan.finding.suggestion)));
  ASSIGN_OR_RETURN(std::optional<RecordedCommand> recorded,
                   LoadCommand(database, plan.base.run_id));
  if (recorded) plan.command = std::move(*recorded);
  if (!options.command.empty()) {
    plan.command.words = options.command;
    plan.command.directory.clear();
  }
  if (plan.command.words.empty())
    return Fail(ErrorCode::kUsage,
                "try: 'tlparse run' did not record this run: give the command behind --, as in "
                "'tlparse try tl_out ID -- python train.py'");
  return plan;
}

void SayPlan(const Planned& plan, const std::string& output) {
  SayOfPlan("finding", plan.finding.title);
  for (const Change& change : plan.finding.changes)
    SayOfPlan("change", change.kind == ChangeKind::kMarkDynamic
                            ? fmt::format("{} when {} of {} is compiled", TextOf(change),
                                          change.function, change.file)
                            : TextOf(change));
  SayCommand(plan.command);
  SayOfPlan("output", output);
}

std::string KnownTime(const std::optional<std::int64_t>& us) {
  return us ? HumanDuration(static_cast<double>(*us) / 1e6) : "not known";
}

struct TimeOfRun {
  const char* name;
  const char* key;
  std::optional<std::int64_t> RunOutcome::*of;
};
constexpr TimeOfRun kTimesOfRun[] = {{"compile time", "compile_us", &RunOutcome::compile_us},
                                     {"step", "step_us", &RunOutcome::step_us},
                                     {"command", "command_us", &RunOutcome::command_us}};

void PrintResult(const Planned& plan, const ExperimentRun& done) {
  PrintHeading(fmt::format("experiment {}: {}", done.id, Name(done.judgement.verdict)));
  PrintWrapped(done.judgement.reason, 2, 2);
  PrintWrapped("change: " + TextOf(done.experiment.changes), 2, 4);
  for (const TimeOfRun& time : kTimesOfRun) {
    const std::optional<std::int64_t>& before = plan.base.*time.of;
    const std::optional<std::int64_t> after =
        done.changed ? (*done.changed).*time.of : std::optional<std::int64_t>();
    if (before || after)
      PrintWrapped(
          fmt::format("{}: {} before, {} after", time.name, KnownTime(before), KnownTime(after)), 2,
          4);
  }
}

JsonWriter ResultJson(const Planned& plan, const ExperimentRun& done) {
  JsonWriter json;
  json.BeginObject().Key("id").Int(done.id).Key("finding_id").String(plan.finding.id);
  json.Key("verdict").String(Name(done.judgement.verdict));
  json.Key("reason").String(done.judgement.reason).Key("changes");
  WriteChanges(json, done.experiment.changes);
  json.Key("command");
  WriteStrings(json, done.experiment.command);
  json.Key("directory").String(done.experiment.directory).Key("came");
  WriteStrings(json, done.judgement.came);
  const auto side = [&](std::string_view name, const RunOutcome* outcome) {
    json.Key(name);
    if (outcome == nullptr) {
      json.Null();
      return;
    }
    json.BeginObject().Key("run_id").Int(outcome->run_id).Key("exit_code");
    outcome->exit_code ? json.Int(*outcome->exit_code) : json.Null();
    for (const TimeOfRun& time : kTimesOfRun) json.Key(time.key).OptionalInt(outcome->*time.of);
    json.EndObject();
  };
  side("before", &plan.base);
  side("after", done.changed ? &*done.changed : nullptr);
  json.EndObject();
  return json;
}

Result<int> Try(const TryOptions& options) {
  ASSIGN_OR_RETURN(const Planned plan, Plan(options));
  const std::string output = options.output ? *options.output : FreeDirectory("tl_try");
  SayPlan(plan, output);
  if (!options.yes) {
    ASSIGN_OR_RETURN(const bool is_wanted, Ask("try"));
    if (!is_wanted) return kExitNo;
  }
  ExperimentPlan experiment;
  experiment.database = options.database;
  experiment.name = fmt::format("{} ({})", output, plan.finding.id);
  experiment.changes = plan.finding.changes;
  experiment.command = plan.command;
  experiment.output = output;
  const auto judge = [&](Database& database, const RunOutcome& changed,
                         const std::vector<Change>& unmade) {
    return Judge(database, plan.finding, plan.base, changed, unmade);
  };
  ASSIGN_OR_RETURN(const ExperimentRun done,
                   RunExperiment(experiment, plan.finding.id, plan.base, judge));
  options.json ? PrintJson(ResultJson(plan, done)) : PrintResult(plan, done);
  return done.judgement.verdict == ExperimentVerdict::kConfirmed ? kExitDone : kExitNo;
}

}  // namespace

int RunTry(std::span<const std::string> arguments) {
  Arguments app(
      "Run a command again with the change that a finding suggests, and say what came of it: "
      "confirmed (the finding is gone, none above a note came), refuted (it is still there), "
      "changed (it is gone, but others came or a note is left) or inconclusive. The command is the "
      "one that 'tlparse run' recorded, in its directory, unless one follows --. Its output goes "
      "to standard error. The new run is added to the database, with a row of the table "
      "experiment; 'tlparse findings' names it. Exit code 1: not confirmed.",
      "try");
  TryOptions options;
  app.Add("database", options.database, "database or output directory").Required();
  app.Add("finding", options.finding, "id of a finding, or its kind if there is one of the kind")
      .Required();
  app.Add("--run", options.run, "the run of this name (default: the latest)");
  app.Add("-o,--output", options.output,
          "output directory of the new run (default: tl_try, or the first of tl_try_2, … that is "
          "free)");
  app.Flag("--yes", options.yes, "run it without asking");
  app.Flag("--json", options.json, "JSON");
  app.SetFooter("The command and the change are printed first, and nothing is run without a yes.");
  if (const std::optional<int> code = ParseWithCommand(app, arguments, options.command))
    return *code;
  Result<int> code = Try(options);
  return code ? *code : ReportError(code.error());
}

}  // namespace tlparse
