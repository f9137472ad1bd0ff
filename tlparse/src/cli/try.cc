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
#include "cli/finding_fields.h"
#include "cli/rank_output.h"
#include "cli/schemas.h"

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
  std::optional<std::int64_t> RunOutcome::*of;
};
constexpr TimeOfRun kTimesOfRun[] = {{"compile time", &RunOutcome::compile_us},
                                     {"step", &RunOutcome::step_us},
                                     {"command", &RunOutcome::command_us}};

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

}  // namespace

template <>
struct FieldsOf<RunOutcome> {
  using Of = RunOutcome;
  static constexpr std::string_view name = "side";
  static constexpr std::tuple list{
      Field{"run_id", &Of::run_id},
      Field{"exit_code", &Of::exit_code, "null: not recorded"},
      Field{"compile_us", &Of::compile_us, "of the process whose compiles took longest"},
      Field{"step_us", &Of::step_us, "median of the profiled steps"},
      Field{"command_us", &Of::command_us, "from the start of the command to its end"},
  };
};

template <>
struct FieldsOf<ExperimentRun> {
  using Of = ExperimentRun;
  static constexpr std::string_view description =
      "What came of one run of a command with the change that a finding suggests.";
  static constexpr std::tuple list{
      Field{"id", &Of::id, "row of the table experiment"},
      Field{"finding_id", [](const Of&, const Planned& plan) { return plan.finding.id; }},
      Field{"verdict", [](const Of& of) { return of.judgement.verdict; },
            "the finding is gone; is still there; is gone, but others came or a note is left; the "
            "run does not show it"},
      Field{"reason", [](const Of& of) { return of.judgement.reason; }, "a sentence"},
      Field{"changes", [](const Of& of) { return of.experiment.changes; }},
      Field{"command", [](const Of& of) { return of.experiment.command; }},
      Field{"directory", [](const Of& of) { return of.experiment.directory; },
            "output directory of the new run"},
      Field{"came", [](const Of& of) { return of.judgement.came; },
            "ids of findings above a note that only the new run has"},
      Field{"before", [](const Of&, const Planned& plan) { return plan.base; }},
      Field{"after", &Of::changed, "null: the command left nothing to read"},
  };
};

std::string TrySchema() { return SchemaOf<ExperimentRun, Planned>("tlparse try --json"); }

namespace {

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
  options.json ? PrintJson(ToJson(done, plan)) : PrintResult(plan, done);
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
