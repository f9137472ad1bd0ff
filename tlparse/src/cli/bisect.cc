// tlparse bisect --good A --bad B [-- COMMAND …]: the smallest set of options and variables in which
// two runs, or two ranks of one, differ that makes the bad one bad.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "answers/experiment/bisection.h"
#include "answers/experiment/good_run.h"
#include "answers/experiment/option_difference.h"
#include "answers/experiment/outcome.h"
#include "base/fields.h"
#include "cli/answer.h"
#include "cli/answer_input.h"
#include "cli/arguments.h"
#include "cli/asking.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/experiment_run.h"
#include "cli/rank_output.h"
#include "cli/schemas.h"
#include "facts/compiles/change_fields.h"
#include "facts/job/participants.h"

namespace tlparse {
namespace {

struct BisectOptions {
  std::string bad;
  std::optional<std::string> good, finding, output;
  std::optional<std::int64_t> most_runs, good_rank, bad_rank;
  std::vector<std::string> command;
  bool numbers = false, code = false, time = false, yes = false, json = false;
};

struct BisectPlan {
  std::string database;  // of the bad run
  // What differs are options of ranks: as the bad one, each rank keeps what the program gives it.
  std::optional<std::int64_t> good_rank, bad_rank;
  RunOutcome bad;
  Finding finding;
  std::optional<GoodRun> good_run;  // where it is what makes a run bad, not a finding
  RecordedCommand command;
  OptionDifferences options;
};

// The named finding of the bad run, or the first above a note that the good run does not have.
Result<Finding> FindingToLookFor(const BisectOptions& options, const std::vector<Finding>& of_good,
                                 const RunOutcome& bad) {
  if (options.finding) {
    ASSIGN_OR_RETURN(const Finding* const named, ChooseFinding(bad.findings, *options.finding));
    if (FindSameCause(of_good, *named) != nullptr)
      return Fail(ErrorCode::kUsage,
                  fmt::format("bisect: the good run has this finding as well: {}", named->title));
    return *named;
  }
  for (const Finding& one : bad.findings) {
    if (one.severity != FindingSeverity::kNote && FindSameCause(of_good, one) == nullptr)
      return one;
  }
  return Fail(ErrorCode::kUsage,
              "bisect: the bad run has no finding above a note that the good run does not have; "
              "--finding names another one");
}

// What makes a run bad in place of a finding; nothing: a finding does.
std::optional<Likeness> LikenessOf(const BisectOptions& options) {
  if (options.numbers) return Likeness::kNumbers;
  if (options.code) return Likeness::kCode;
  if (options.time) return Likeness::kTime;
  return std::nullopt;
}

// Sets finding and options.
Result<void> CompareSides(const BisectOptions& options, Database& bad, BisectPlan& plan) {
  if (options.good_rank) {
    plan.good_rank = options.good_rank;
    plan.bad_rank = options.bad_rank;
    ASSIGN_OR_RETURN(plan.finding, FindingToLookFor(options, {}, plan.bad));
    ASSIGN_OR_RETURN(plan.options, CompareOptionsOfRanks(bad, plan.bad.run_id, *options.good_rank,
                                                         *options.bad_rank));
    return {};
  }
  ASSIGN_OR_RETURN(AnswerInput good, OpenAnswerInput(*options.good));
  ASSIGN_OR_RETURN(const RunOutcome good_one, LoadOutcome(good.database, good.run));
  if (const std::optional<Likeness> likeness = LikenessOf(options)) {
    ASSIGN_OR_RETURN(plan.good_run,
                     GoodRun::Load(*likeness, good.database, good_one, bad, plan.bad));
    ASSIGN_OR_RETURN(const Judgement judgement, plan.good_run->Judge(bad, plan.bad));
    plan.finding.id = NameOf(*likeness);
    plan.finding.title = judgement.reason;
  } else {
    ASSIGN_OR_RETURN(plan.finding, FindingToLookFor(options, good_one.findings, plan.bad));
  }
  ASSIGN_OR_RETURN(plan.options,
                   CompareOptions(good.database, good_one.run_id, bad, plan.bad.run_id));
  return {};
}

Result<BisectPlan> PlanBisection(const BisectOptions& options) {
  if (!IsAnswerDatabase(options.bad) && options.bad.find(':') == std::string::npos)
    return Fail(ErrorCode::kUsage,
                fmt::format("bisect: --bad '{}' has to be a database, or the output directory of a "
                            "run: the new runs are added to it",
                            options.bad));
  if (options.good_rank.has_value() != options.bad_rank.has_value() ||
      options.good_rank.has_value() == options.good.has_value())
    return Fail(
        ErrorCode::kUsage,
        "bisect: the good side is --good, a run, or --good-rank and --bad-rank, two ranks of "
        "the bad run");
  const int likenesses = options.numbers + options.code + options.time;
  if (likenesses > 0 && (likenesses > 1 || options.finding || !options.good))
    return Fail(ErrorCode::kUsage,
                "bisect: --numbers, --code and --time each need --good, and go without one another "
                "and without --finding");
  ASSIGN_OR_RETURN(AnswerInput bad, OpenAnswerInput(options.bad));
  BisectPlan plan;
  plan.database = bad.database.path();
  ASSIGN_OR_RETURN(plan.bad, LoadOutcome(bad.database, bad.run));
  RETURN_IF_ERROR(CompareSides(options, bad.database, plan));
  if (plan.options.differences.empty())
    return Fail(ErrorCode::kUsage,
                fmt::format("bisect: the {} differ in no variable and no option that can be "
                            "set{}",
                            plan.good_rank ? "ranks" : "runs",
                            plan.options.left_out.empty()
                                ? std::string(" and that both inputs show")
                                : fmt::format("; not to be set: {}",
                                              fmt::join(plan.options.left_out, ", "))));
  ASSIGN_OR_RETURN(std::optional<RecordedCommand> recorded,
                   LoadCommand(bad.database, plan.bad.run_id));
  if (recorded) plan.command = std::move(*recorded);
  if (!options.command.empty()) {
    plan.command.words = options.command;
    plan.command.directory.clear();
  }
  if (plan.command.words.empty())
    return Fail(ErrorCode::kUsage,
                "bisect: 'tlparse run' did not record the bad run: give the command behind --");
  return plan;
}

void SayBisection(const BisectPlan& plan, const std::string& output, std::size_t most_runs) {
  SayOfPlan(plan.good_run ? NameOf(plan.good_run->likeness()) : "finding", plan.finding.title);
  const std::string good =
      plan.good_rank ? fmt::format("rank {}", *plan.good_rank) : std::string("good");
  for (const OptionDifference& one : plan.options.differences)
    SayOfPlan("option", fmt::format("{} ({}: {})", TextOf(one.bad), good, TextOf(one.good)));
  if (!plan.options.left_out.empty())
    SayOfPlan("not set", fmt::format("{}", fmt::join(plan.options.left_out, ", ")));
  SayCommand(plan.command);
  SayOfPlan("output", fmt::format("{}, at most {} runs", output, most_runs));
}

constexpr std::string_view kStates[] = {"good", "bad", "unknown"};

std::string_view NameOf(BisectionState state) { return kStates[static_cast<int>(state)]; }

struct MadeRun {
  std::int64_t experiment = 0;
  std::vector<std::size_t> bad;
  BisectionState state = BisectionState::kUnknown;
  std::string reason;
};

struct InBisect {
  const BisectPlan& plan;
  const std::vector<MadeRun>& runs;
};

std::vector<Change> BadChanges(const BisectPlan& plan, const std::vector<std::size_t>& which) {
  std::vector<Change> changes;
  for (const std::size_t index : which) changes.push_back(plan.options.differences[index].bad);
  return changes;
}

template <Change OptionDifference::*side>
std::vector<Change> ChangesOf(const Bisection&, const InBisect& in) {
  std::vector<Change> changes;
  for (const OptionDifference& one : in.plan.options.differences) changes.push_back(one.*side);
  return changes;
}

}  // namespace

template <>
struct FieldsOf<MadeRun> {
  using Of = MadeRun;
  static constexpr FieldList list{
      Field{"experiment", &Of::experiment, "row of the table experiment"},
      Field{"as_bad", &Of::bad,
            "places in good and bad: these as in the bad run, the others as in the good one"},
      Field{"state", [](const Of& of) { return NameOf(of.state); }, "", kStates},
      Field{"reason", &Of::reason},
  };
};

template <>
struct FieldsOf<Bisection> {
  using Of = Bisection;
  static constexpr std::string_view description =
      "The smallest set of variables and options in which two runs differ that makes the bad one "
      "bad.";
  static constexpr FieldList list{
      Field{"finding_id", [](const Of&, const InBisect& in) { return in.plan.finding.id; },
            "a run is bad if it has this finding; numbers, code: if outputs of compiled graphs, or "
            "their generated code, differ from the good run's; time: if it is nearer to the bad "
            "run's"},
      Field{"cause", [](const Of& of, const InBisect& in) { return BadChanges(in.plan, of.cause); },
            "those of bad"},
      Field{"is_sure", &Of::is_sure,
            "a run with these as in the bad run, and the others as in the good one, was bad"},
      Field{"is_smallest", &Of::is_smallest,
            "and it is known that without any one of them it would not be"},
      Field{"good", &ChangesOf<&OptionDifference::good>, "what differs, as the good run has it"},
      Field{"bad", &ChangesOf<&OptionDifference::bad>,
            "the same, in the same order, as the bad run has it"},
      Field{"left_out", [](const Of&, const InBisect& in) { return in.plan.options.left_out; },
            "options that differ and cannot be set"},
      Field{"runs", [](const Of&, const InBisect& in) { return in.runs; }},
  };
};

std::string BisectSchema() { return SchemaOf<Bisection, InBisect>("tlparse bisect --json"); }

namespace {

// What is so where the run is bad.
std::string_view BadnessOf(const BisectPlan& plan) {
  if (!plan.good_run) return "the finding is there";
  switch (plan.good_run->likeness()) {
    case Likeness::kNumbers:
      return "the outputs differ from the good run's";
    case Likeness::kCode:
      return "the generated code differs from the good run's";
    case Likeness::kTime:
      return "the time is the bad run's";
  }
  return "";
}

void PrintBisection(const BisectPlan& plan, const Bisection& found,
                    const std::vector<MadeRun>& runs) {
  const std::string cause = TextOf(BadChanges(plan, found.cause));
  PrintHeading(
      fmt::format("{} after {}", found.is_sure ? "found" : "not found", Count(runs.size(), "run")));
  if (found.is_sure && plan.good_rank) {
    PrintWrapped(fmt::format("Where each rank keeps {}, and all have the others as rank {}, the "
                             "finding is there; rank {} has: {}",
                             found.cause.size() == 1 ? std::string("this option")
                                                     : fmt::format("these {}", found.cause.size()),
                             *plan.good_rank, *plan.bad_rank, cause),
                 2, 4);
  } else if (found.is_sure) {
    PrintWrapped(fmt::format("With {} as in the bad run, and all others as in the good one, {}: {}",
                             found.cause.size() == 1 ? std::string("this")
                                                     : fmt::format("these {}", found.cause.size()),
                             BadnessOf(plan), cause),
                 2, 4);
  } else {
    PrintWrapped(
        "No run with these differences alone shows it: it may depend on chance, or on "
        "what cannot be set from outside of the program.",
        2, 2);
    return;
  }
  if (!found.is_smallest)
    PrintWrapped("Not all smaller sets could be tried: there may be one.", 2, 2);
}

Result<Judgement> JudgeLikeness(Database& database, const GoodRun& good_run,
                                const RunOutcome& changed, const std::vector<Change>& unmade) {
  if (!unmade.empty())
    return Judgement{ExperimentVerdict::kInconclusive,
                     fmt::format("no process of the new run made this change: {}", TextOf(unmade)),
                     {}};
  return good_run.Judge(database, changed);
}

Result<int> RunBisection(const BisectOptions& options) {
  ASSIGN_OR_RETURN(const BisectPlan plan, PlanBisection(options));
  const auto most_runs = static_cast<std::size_t>(options.most_runs.value_or(40));
  const std::string output =
      std::filesystem::absolute(options.output ? *options.output : FreeDirectory("tl_bisect"))
          .string();
  SayBisection(plan, output, most_runs);
  if (!options.yes) {
    ASSIGN_OR_RETURN(const bool is_wanted, Ask("bisect"));
    if (!is_wanted) return kExitNo;
  }
  if (mkdir(output.c_str(), 0777) != 0)
    return Fail(ErrorCode::kIo, fmt::format("bisect: cannot make the directory '{}'", output));
  ExperimentPlan experiment;
  experiment.database = std::filesystem::absolute(plan.database).string();
  experiment.command = plan.command;
  experiment.base_run_id = plan.bad.run_id;
  std::vector<MadeRun> runs;
  const auto judge = [&](Database& database, const RunOutcome& before, const RunOutcome& changed,
                         const std::vector<Change>& unmade) {
    return plan.good_run ? JudgeLikeness(database, *plan.good_run, changed, unmade)
                         : Judge(database, plan.finding, before, changed, unmade);
  };
  const auto test = [&](const std::vector<std::size_t>& as_bad) -> Result<BisectionState> {
    experiment.output = fmt::format("{}/run_{}", output, runs.size() + 1);
    experiment.name = experiment.output;
    experiment.changes.clear();
    for (std::size_t i = 0; i < plan.options.differences.size(); ++i) {
      const OptionDifference& one = plan.options.differences[i];
      const bool is_as_bad = std::binary_search(as_bad.begin(), as_bad.end(), i);
      if (!is_as_bad)
        experiment.changes.push_back(one.good);
      else if (!plan.good_rank)
        experiment.changes.push_back(one.bad);
    }
    ASSIGN_OR_RETURN(const ExperimentRun done,
                     RunExperiment(experiment, plan.finding.id, plan.bad, judge));
    const ExperimentVerdict verdict = done.judgement.verdict;
    // A command that fails otherwise may have ended before the finding could show.
    const bool has_failed = done.changed && done.changed->exit_code.value_or(0) != 0 &&
                            done.changed->exit_code != plan.bad.exit_code;
    const BisectionState state = verdict == ExperimentVerdict::kRefuted ? BisectionState::kBad
                                 : verdict == ExperimentVerdict::kInconclusive || has_failed
                                     ? BisectionState::kUnknown
                                     : BisectionState::kGood;
    runs.push_back({done.id, as_bad, state, done.judgement.reason});
    SayOfPlan(fmt::format("run {}", runs.size()),
              fmt::format("{} of {} as in the bad run: {} ({})", as_bad.size(),
                          plan.options.differences.size(), NameOf(state), done.judgement.reason));
    return state;
  };
  ASSIGN_OR_RETURN(const Bisection found, Bisect(plan.options.differences.size(), most_runs, test));
  if (options.json) {
    PrintJson(ToJson(found, InBisect{plan, runs}));
  } else {
    PrintBisection(plan, found, runs);
  }
  return found.is_sure ? kExitDone : kExitNo;
}

}  // namespace

int RunBisect(std::span<const std::string> arguments) {
  Arguments app(
      "The smallest set of environment variables and options in which two runs differ that makes "
      "the bad one bad: the command is run again and again with a part of them as in the bad run, "
      "the others as in the good one, and a run is bad if it has the finding. Of two ranks of one "
      "run: a part as each rank has them, the others on every rank as the good rank. Each run is "
      "added to the database of the bad run, with a row of the table experiment. Exit code 1: none "
      "was found.",
      "bisect");
  BisectOptions options;
  app.Add("--good", options.good, "database, DB:run, log or directory of the good run");
  app.Add("--bad", options.bad, "database or DB:run of the bad run").Required();
  app.Add("--good-rank", options.good_rank, "instead of --good: a rank of the bad run");
  app.Add("--bad-rank", options.bad_rank, "and the rank that differs from it");
  app.Add("--finding", options.finding,
          "id or kind of the finding that makes a run bad (default: the first above a note that "
          "the good run does not have)");
  app.Flag(
      "--numbers", options.numbers,
      "instead of a finding: a run is bad if outputs of its compiled graphs differ from the "
      "good run's, by more than a thousandth in the norm or in the count of NaN; both runs are "
      "of 'tlparse run --numbers'");
  app.Flag("--code", options.code,
           "instead of a finding: a run is bad if the generated code of a graph differs from the "
           "good run's, by its hash without paths and addresses");
  app.Flag("--time", options.time,
           "instead of a finding: a run is bad if the time of a step is nearer to the bad run's "
           "than to the good run's (both of 'tlparse run --profile'); without profiles the compile "
           "time, where no cache was hit");
  app.Add("--most-runs", options.most_runs, "end after so many runs (default: 40)").Positive();
  app.Add("-o,--output", options.output,
          "directory of the new runs (default: tl_bisect, or the first of tl_bisect_2, … that is "
          "free)");
  app.Flag("--yes", options.yes, "run it without asking");
  app.Flag("--json", options.json, "JSON");
  app.SetFooter(
      "The command is the one that 'tlparse run' recorded for the bad run, unless one follows --. "
      "It and the differences are printed first, and nothing is run without a yes.");
  if (const std::optional<int> code = ParseWithCommand(app, arguments, options.command))
    return *code;
  Result<int> code = RunBisection(options);
  return code ? *code : ReportError(code.error());
}

}  // namespace tlparse
