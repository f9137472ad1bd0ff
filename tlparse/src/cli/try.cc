// tlparse try <db> <finding> [-- COMMAND …]: run a command again with the change that a finding
// suggests, and say what came of it.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "answers/experiment/graph_alone.h"
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
  std::optional<std::int64_t> steps;
  std::string python = "python3";
  bool graph = false, yes = false, json = false;
};

struct Planned {
  RunOutcome base;
  Finding finding;
  RecordedCommand command;
  std::vector<Change> changes;
  std::string script;  // --graph: what is run in place of the command
};

// Loads the script of the graph and sets the command that runs it in `folder`.
Result<void> PlanGraph(Database& database, const TryOptions& options, const std::string& folder,
                       Planned& plan) {
  ASSIGN_OR_RETURN(plan.script, LoadGraphScript(database, plan.base.run_id, plan.finding));
  plan.changes = ChangesOfGraph(plan.finding.changes);
  plan.command.words = {options.python, folder + "/fx_graph_runnable.py"};
  plan.command.directory = folder;
  plan.command.variables.push_back("TORCHINDUCTOR_CACHE_DIR=" + folder + "/cache");
  return {};
}

Result<Planned> Plan(const TryOptions& options, const std::string& output) {
  ASSIGN_OR_RETURN(Database database, OpenAnswerDatabase(options.database));
  Planned plan;
  ASSIGN_OR_RETURN(plan.base, LoadOutcome(database, options.run.value_or("")));
  ASSIGN_OR_RETURN(const Finding* const finding,
                   ChooseFinding(plan.base.findings, options.finding));
  plan.finding = *finding;
  if (plan.finding.changes.empty() && !options.graph)
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
  plan.changes = plan.finding.changes;
  if (options.steps)
    plan.changes.push_back({ChangeKind::kSteps, {}, std::to_string(*options.steps), {}, {}});
  if (options.graph) {
    const std::string folder = std::filesystem::absolute(output + "_graph").string();
    RETURN_IF_ERROR(PlanGraph(database, options, folder, plan));
    return plan;
  }
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
  for (const Change& change : plan.changes)
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

void PrintResult(const ExperimentRun& done) {
  PrintHeading(fmt::format("experiment {}: {}", done.id, Name(done.judgement.verdict)));
  PrintWrapped(done.judgement.reason, 2, 2);
  if (!done.experiment.changes.empty())
    PrintWrapped("change: " + TextOf(done.experiment.changes), 2, 4);
  for (const TimeOfRun& time : kTimesOfRun) {
    const std::optional<std::int64_t>& before = done.before.*time.of;
    const std::optional<std::int64_t> after =
        done.changed ? (*done.changed).*time.of : std::optional<std::int64_t>();
    if (before || after)
      PrintWrapped(
          fmt::format("{}: {} before, {} after", time.name, KnownTime(before), KnownTime(after)), 2,
          4);
  }
  if (done.changed && done.changed->cache_hits > done.before.cache_hits)
    PrintWrapped(
        fmt::format("cache hits: {} before, {} after, which the compile time may be due to",
                    done.before.cache_hits, done.changed->cache_hits),
        2, 4);
}

}  // namespace

template <>
struct FieldsOf<RunOutcome> {
  using Of = RunOutcome;
  static constexpr std::string_view name = "side";
  static constexpr FieldList list{
      Field{"run_id", &Of::run_id},
      Field{"exit_code", &Of::exit_code, "null: not recorded"},
      Field{"compile_us", &Of::compile_us, "of the process whose compiles took longest"},
      Field{"cache_hits", &Of::cache_hits, "lookups that compiles were spared by"},
      Field{"step_us", &Of::step_us, "median of the profiled steps"},
      Field{"command_us", &Of::command_us, "from the start of the command to its end"},
  };
};

template <>
struct FieldsOf<ExperimentRun> {
  using Of = ExperimentRun;
  static constexpr std::string_view description =
      "What came of one run of a command with the change that a finding suggests.";
  static constexpr FieldList list{
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
      Field{"before", &Of::before, "the old run, or the one that was made before"},
      Field{"after", &Of::changed, "null: the command left nothing to read"},
  };
};

std::string TrySchema() { return SchemaOf<ExperimentRun, Planned>("tlparse try --json"); }

namespace {

// A run that was ended early shows nothing of what would have come.
Judgement WithSteps(const TryOptions& options, Judgement judgement, bool was_ended) {
  judgement.reason += was_ended
                          ? fmt::format("; tlparse ended the command after step {}", *options.steps)
                          : fmt::format("; no optimizer made {} steps: the command ended by itself",
                                        *options.steps);
  return judgement;
}

Result<Judgement> JudgeTry(Database& database, const TryOptions& options, const Planned& plan,
                           const RunOutcome& before, const RunOutcome& changed,
                           std::vector<Change> unmade) {
  if (options.graph) return JudgeChangedGraph(database, plan.finding, changed, unmade);
  const bool was_ended = FindChange(unmade, ChangeKind::kSteps) == nullptr;
  std::erase_if(unmade, [](const Change& one) { return one.kind == ChangeKind::kSteps; });
  ASSIGN_OR_RETURN(Judgement judgement, Judge(database, plan.finding, before, changed, unmade));
  if (judgement.verdict == ExperimentVerdict::kRefuted &&
      plan.finding.kind == FindingKind::kConfigDivergence) {
    judgement.verdict = ExperimentVerdict::kInconclusive;
    judgement.reason = "the program sets the option after the change does: " + judgement.reason;
  }
  return options.steps ? WithSteps(options, std::move(judgement), was_ended) : judgement;
}

// Of the run without the change: whether it shows the finding, without which a change shows nothing.
Result<Judgement> JudgeUnchanged(Database& database, const TryOptions& options, const Planned& plan,
                                 const RunOutcome& run) {
  if (options.graph) return JudgeGraph(database, plan.finding, run);
  if (FindSameCause(run.findings, plan.finding) == nullptr)
    return Judgement{ExperimentVerdict::kInconclusive,
                     fmt::format("ended after step {}, the command does not show the finding, also "
                                 "without the change",
                                 *options.steps),
                     {}};
  return Judgement{ExperimentVerdict::kRefuted, "the finding is there without the change", {}};
}

// The command without the change, if it is shortened, or the graph alone.
Result<std::optional<ExperimentRun>> RunUnchanged(const TryOptions& options, const Planned& plan,
                                                  ExperimentPlan experiment) {
  if (!options.steps && !options.graph) return std::optional<ExperimentRun>();
  experiment.changes.clear();
  if (options.steps) experiment.changes.push_back(*FindChange(plan.changes, ChangeKind::kSteps));
  const auto judge = [&](Database& database, const RunOutcome&, const RunOutcome& run,
                         const std::vector<Change>&) {
    return JudgeUnchanged(database, options, plan, run);
  };
  ASSIGN_OR_RETURN(ExperimentRun done,
                   RunExperiment(experiment, plan.finding.id, plan.base, judge));
  return std::optional<ExperimentRun>(std::move(done));
}

// Whether the change can be tried after that.
bool ShowsFinding(const TryOptions& options, const ExperimentRun& first) {
  return first.judgement.verdict ==
         (options.graph ? ExperimentVerdict::kConfirmed : ExperimentVerdict::kRefuted);
}

Result<ExperimentRun> RunAll(const TryOptions& options, const Planned& plan,
                             const std::string& output) {
  ExperimentPlan experiment;
  experiment.database = std::filesystem::absolute(options.database).string();
  experiment.name = fmt::format("{} ({})", output, plan.finding.id);
  experiment.base_run_id = plan.base.run_id;
  experiment.changes = plan.changes;
  experiment.command = plan.command;
  experiment.output = std::filesystem::absolute(output).string();
  ASSIGN_OR_RETURN(std::optional<ExperimentRun> first, RunUnchanged(options, plan, experiment));
  if (first && (plan.changes.empty() || !ShowsFinding(options, *first))) return std::move(*first);
  if (first) {
    experiment.output += "_changed";
    experiment.name += " (changed)";
  }
  const auto judge = [&](Database& database, const RunOutcome& before, const RunOutcome& changed,
                         const std::vector<Change>& unmade) {
    return JudgeTry(database, options, plan, before, changed, unmade);
  };
  return RunExperiment(experiment, plan.finding.id, first ? *first->changed : plan.base, judge);
}

Result<void> WriteScript(const Planned& plan) {
  if (plan.script.empty()) return {};
  std::ofstream file;
  if (mkdir(plan.command.directory.c_str(), 0777) == 0)
    file.open(plan.command.words.back(), std::ios::binary);
  if (!(file << plan.script << std::flush))
    return Fail(ErrorCode::kIo, fmt::format("try: cannot write '{}'", plan.command.words.back()));
  return {};
}

Result<int> Try(const TryOptions& options) {
  const std::string output = options.output ? *options.output : FreeDirectory("tl_try");
  ASSIGN_OR_RETURN(const Planned plan, Plan(options, output));
  SayPlan(plan, output);
  if (!options.yes) {
    ASSIGN_OR_RETURN(const bool is_wanted, Ask("try"));
    if (!is_wanted) return kExitNo;
  }
  RETURN_IF_ERROR(WriteScript(plan));
  ASSIGN_OR_RETURN(const ExperimentRun done, RunAll(options, plan, output));
  options.json ? PrintJson(ToJson(done, plan)) : PrintResult(done);
  return done.judgement.verdict == ExperimentVerdict::kConfirmed ? kExitDone : kExitNo;
}

}  // namespace

int RunTry(std::span<const std::string> arguments) {
  Arguments app(
      "Run a command again with the change that a finding suggests, and say what came of it: "
      "confirmed (the finding is gone, none above a note came), refuted (it is still there), "
      "changed (it is gone, but others came or a note is left) or inconclusive. With "
      "fullgraph=True, "
      "and with --graph without a change, confirmed is the place or the failure, not a cure. The "
      "command is the "
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
          "free; of two runs the second has _changed after it)");
  app.Add("--steps", options.steps,
          "end the command after so many steps of its first optimizer; it is run so without the "
          "change before")
      .Positive();
  app.Flag("--graph", options.graph,
           "of a compile that failed run only its graph (fx_graph_runnable of the log), not the "
           "command");
  app.Add("--python", options.python, "what runs the graph (default: python3)");
  app.Flag("--yes", options.yes, "run it without asking");
  app.Flag("--json", options.json, "JSON");
  app.SetFooter("The command and the change are printed first, and nothing is run without a yes.");
  if (const std::optional<int> code = ParseWithCommand(app, arguments, options.command))
    return *code;
  if (options.graph && (options.steps || !options.command.empty()))
    return ReportError({ErrorCode::kUsage, "try: --graph runs no command and no steps"});
  Result<int> code = Try(options);
  return code ? *code : ReportError(code.error());
}

}  // namespace tlparse
