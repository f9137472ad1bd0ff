// tlparse run [options] -- COMMAND …: start a command with everything recorded, follow it, print
// the findings.
#include "cli/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "base/file_descriptor.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/finding_output.h"
#include "cli/rank_output.h"
#include "cli/run_options.h"
#include "cli/terminal.h"
#include "cli/watch.h"
#include "facts/job/participants.h"
#include "findings/findings.h"
#include "queries/cli/run.h"
#include "report/finding_text.h"
#include "report/output_directory.h"
#include "runner/child.h"
#include "runner/error_text.h"
#include "runner/hang_dump.h"
#include "runner/last_dumps.h"
#include "runner/process_watch.h"
#include "runner/profile_demand.h"
#include "runner/python_stacks.h"
#include "runner/recording.h"
#include "runner/run_file.h"

extern char** environ;

namespace tlparse {

namespace {

constexpr std::chrono::seconds kTermToKill(10);
// What is taken of a hang uses the CPU itself; later than that, less idle time is the command's work.
constexpr std::int64_t kTakenUs = 10'000'000;
constexpr std::chrono::seconds kIdleAtWork(5);
constexpr std::int64_t kSureUs = 5'000'000;  // after what was at work in its stead
constexpr std::size_t kMostHangs = 3;        // reports of one command

std::int64_t EpochUsNow() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void SayOfRun(const std::string& text) {
  std::fprintf(stderr, "tlparse: %s\n", Printable(text).c_str());
}

std::vector<const char*> OwnEnvironment() {
  std::vector<const char*> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) variables.push_back(*entry);
  return variables;
}

// The command and what is known of it.
class RunningCommand : public StartedJob {
 public:
  RunningCommand(const RunOptions& options, const RecordPlaces& places,
                 const JobEnvironment& environment)
      : options_(options), places_(places) {
    facts_.command = options.command;
    facts_.directory = std::filesystem::current_path().string();
    facts_.environment = TellingVariables(environment.variables);
    facts_.recorded = environment.settings;
    facts_.started_us = EpochUsNow();
  }

  Result<void> Start(const JobEnvironment& environment) {
    RETURN_IF_ERROR(child_.Start(options_.command, environment.variables));
    processes_ = std::make_unique<ProcessWatch>(child_, places_.processes);
    return {};
  }

  bool WaitForEnd(std::chrono::microseconds longest) override {
    LookForHang();
    LookForDemand();
    const std::optional<int> code = processes_->WaitForEnd(longest);
    if (code) facts_.exit_code = *code;
    return code.has_value();
  }

  void SeeFindings(const std::vector<Finding>& findings) override {
    const auto stuck = std::find_if(findings.begin(), findings.end(), [](const Finding& one) {
      return one.kind == FindingKind::kStuck;
    });
    if (stuck_.empty()) stuck_since_us_ = EpochUsNow();
    stuck_ = stuck == findings.end() ? std::string() : stuck->title;
    stuck_ranks_ = stuck == findings.end() ? std::vector<std::int64_t>() : stuck->ranks;
  }

  Result<void> Complete() override {
    if (terminated_) kill(-child_.pid(), SIGKILL);  // what has not ended with the command
    facts_.ended_us = EpochUsNow();
    facts_.processes = processes_->Processes();
    TakeLastStacks(places_, facts_.processes);
    facts_.aborts = errors_.Aborts(facts_.processes);
    if (facts_.exit_code == 0 || SayNoCause(facts_.processes, facts_.aborts))
      TakeLastDumps(places_, facts_.processes);
    return WriteRunFile(places_.recorded + "/run.json", RunFileText(facts_));
  }

  int exit_code() const { return facts_.exit_code; }
  // Without an answer about its logs.
  void WaitWithoutWatch() {
    while (!WaitForEnd(std::chrono::seconds(1))) {
    }
  }

 private:
  void LookForHang();
  void LookForDemand();
  void LookForBusy();
  void HandleHang(const std::string& why, const std::vector<std::int64_t>& busy);

  const RunOptions& options_;
  const RecordPlaces& places_;
  RunFacts facts_;
  const ErrorText errors_;
  Child child_;
  std::unique_ptr<ProcessWatch> processes_;
  std::string stuck_;  // title of the first finding of that kind; empty: none
  std::vector<std::int64_t> stuck_ranks_;
  std::int64_t stuck_since_us_ = 0;  // when it was first seen
  std::int64_t hang_us_ = 0;         // when the last hang was handled
  bool is_handled_ = false;          // the hang that lasts
  std::vector<std::int64_t> busy_;   // ranks for which the others wait
  std::optional<std::chrono::steady_clock::time_point> terminated_;
};

void RunningCommand::LookForHang() {
  if (terminated_ && std::chrono::steady_clock::now() - *terminated_ >= kTermToKill) {
    kill(-child_.pid(), SIGKILL);
    terminated_.reset();
  }
  if (options_.on_hang == OnHang::kNone) return;
  const std::chrono::seconds idle = processes_->IdleTime();
  const std::int64_t now_us = EpochUsNow();
  if (stuck_.empty() && idle < kIdleAtWork && now_us - hang_us_ > kTakenUs) is_handled_ = false;
  // A compiler that is at work takes longer on a busy machine.
  if (!stuck_.empty() && processes_->IsProgramAtWork(stuck_ranks_)) stuck_since_us_ = now_us;
  // None is ended before the time that was given because it takes longer than others did.
  const std::int64_t least_us =
      options_.on_hang == OnHang::kKill ? options_.hang_after_s * 1'000'000 : 0;
  const bool is_stuck = !stuck_.empty() && now_us - stuck_since_us_ >= std::max(least_us, kSureUs);
  const bool is_idle = idle >= std::chrono::seconds(options_.hang_after_s);
  if (is_handled_ || (!is_stuck && !is_idle)) return LookForBusy();
  is_handled_ = true;
  HandleHang(is_stuck
                 ? stuck_
                 : fmt::format("no process of the command has used the CPU for {} s", idle.count()),
             {});
  hang_us_ = EpochUsNow();
}

// Once for the same ranks. They may be at work: they are not ended.
void RunningCommand::LookForBusy() {
  const std::chrono::seconds least(options_.hang_after_s);
  std::optional<std::vector<std::int64_t>> busy = processes_->BusyAlone(least);
  if (is_handled_ || !busy || *busy == busy_) return;
  busy_ = *std::move(busy);
  if (busy_.empty()) return;
  HandleHang(fmt::format("{} alone used the CPU for {} s", RanksText(busy_), least.count()), busy_);
}

void RunningCommand::LookForDemand() {
  if (!TakeDemand()) return;
  processes_->LookNow();  // one that has just said that it is ready must not miss it
  const int asked = AskForProfiles(places_, processes_->Processes());
  if (options_.quiet) return;
  SayOfRun(asked == 0 ? std::string("no profile: no process with our hook runs")
                      : fmt::format("a profile of 10 s was asked for in {}",
                                    Count(static_cast<std::size_t>(asked), "process")));
}

void RunningCommand::HandleHang(const std::string& why, const std::vector<std::int64_t>& busy) {
  if (facts_.hangs.size() >= kMostHangs) return;
  HangReport report = TakeHangDump(places_, *processes_, why);
  report.busy = busy;
  if (!options_.quiet) {
    SayOfRun((busy.empty() ? "the command seems to hang: " : "the others wait: ") + why);
    for (const std::string& line : report.taken) SayOfRun(line);
    for (const std::string& line : report.missing) SayOfRun("not taken: " + line);
  }
  facts_.hangs.push_back(report);
  if (options_.on_hang != OnHang::kKill || terminated_ || !busy.empty()) return;
  facts_.hangs.back().was_ended = true;
  if (!options_.quiet) SayOfRun("the command is ended (--on-hang kill)");
  kill(-child_.pid(), SIGTERM);
  terminated_ = std::chrono::steady_clock::now();
}

// Standard output is the command's: what answers print goes to standard error, or nowhere.
void LeaveOutputToCommand(bool is_quiet) {
  const FileDescriptor nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  dup2(is_quiet ? nowhere.get() : STDERR_FILENO, STDOUT_FILENO);
  const FileDescriptor no_input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  dup2(no_input.get(), STDIN_FILENO);
}

void SaySettings(const std::string& output, const JobEnvironment& environment,
                 const RecordPlaces& places) {
  SayOfRun(fmt::format("recording into {}", output));
  for (const JobEnvironment::Setting& one : environment.settings) {
    if (one.is_users) SayOfRun(fmt::format("{}={} was set before and stays", one.name, one.value));
  }
  if (places.pipes.empty())
    SayOfRun("no pipes can be made in the output directory: no dumps of the recorder on a hang");
}

bool HasRecorded(const RecordPlaces& places, std::string_view prefix) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(places.recorded, error)) {
    if (entry.path().filename().string().starts_with(prefix)) return true;
  }
  return false;
}

// Asked for and not there.
void SayMissing(const HookRequests& requests, const RecordPlaces& places) {
  const bool by_steps = requests.profile.starts_with("steps");
  const bool on_demand = requests.profile.starts_with("demand");
  if (on_demand && !HasRecorded(places, "profile_pid_"))
    SayOfRun("no profile was written: none was asked for, or no process has imported torch");
  if (!requests.profile.empty() && !on_demand && !HasRecorded(places, "profile_pid_"))
    SayOfRun(
        fmt::format("no profile was written: no process with our hook has counted {} of an "
                    "optimizer of PyTorch",
                    by_steps ? "these steps" : "steps"));
  if (requests.memory && !HasRecorded(places, "memory_pid_"))
    SayOfRun(fmt::format(
        "no memory snapshot was written: no process with our hook has used CUDA through PyTorch "
        "and then made a step, run out of memory, or ended by itself; {}",
        HasRecorded(places, "profile_pid_")
            ? "the profiles have the memory of their time, on the CPU too"
            : "with --profile the memory of the CPU is recorded as well"));
}

Result<void> SayMissingNumbers(const std::string& output) {
  ASSIGN_OR_RETURN(Database database, OpenAnswerDatabase(output));
  ASSIGN_OR_RETURN(const FirstRow<NumbersOfRun> numbers, First(Query<NumbersOfRun>(database, {})));
  if (!numbers->is_there)
    SayOfRun(
        "no numbers were recorded: no process with our hook has called a graph that Inductor "
        "compiled, or the hook does not know this version of PyTorch");
  return {};
}

Result<void> PrintEnd(const std::string& output, const std::optional<std::int64_t>& world_size) {
  ASSIGN_OR_RETURN(Database database, OpenAnswerDatabase(output));
  FindingsOptions options;
  options.world_size = world_size;
  ASSIGN_OR_RETURN(const std::vector<Finding> findings, FindFindings(database, options));
  PrintHeading(fmt::format("tlparse: {} ({}/index.html)",
                           findings.empty() ? "no findings" : Count(findings.size(), "finding"),
                           output));
  PrintFindings(findings);
  std::fflush(stdout);
  return {};
}

}  // namespace

Result<int> RecordCommand(const RunOptions& options) {
  RETURN_IF_ERROR(CreateOutputDirectory(options.output, options.overwrite));
  ASSIGN_OR_RETURN(const RecordPlaces places, MakeRecordPlaces(options.output, !options.no_hook));
  const JobEnvironment environment = MakeJobEnvironment(OwnEnvironment(), places, options.requests);
  if (!options.quiet) SaySettings(options.output, environment, places);
  if (options.requests.profile.starts_with("demand")) ListenForDemands();
  if (options.requests.profile.starts_with("demand") && !options.quiet)
    SayOfRun(fmt::format("kill -PROF {} profiles the next 10 s", getpid()));
  RunningCommand command(options, places, environment);
  if (Result<void> started = command.Start(environment); !started) {
    const bool is_missing = started.error().code == ErrorCode::kNotFound;
    ReportError(started.error());
    return is_missing ? 127 : 126;
  }
  LeaveOutputToCommand(options.quiet);
  WatchOptions watch;
  watch.input = options.output + "/recorded";
  if (environment.has_own_trace && !environment.trace.empty())
    watch.more_inputs.push_back(environment.trace);
  watch.output = options.output;
  watch.run = options.output;
  watch.world_size = options.world_size;
  watch.is_output_made = watch.only_findings = true;
  const Result<int> watched = WatchJob(watch, command);
  command.WaitWithoutWatch();
  if (!options.quiet) SayMissing(options.requests, places);
  Result<void> shown;
  if (watched && !options.quiet && !options.requests.numbers.empty())
    shown = SayMissingNumbers(options.output);
  if (shown && watched && !options.quiet) shown = PrintEnd(options.output, options.world_size);
  if (!watched) ReportError(watched.error());
  if (!shown) ReportError(shown.error());
  return command.exit_code();
}

int RunCommandRecorded(std::span<const std::string> arguments) {
  RunOptions options;
  if (const std::optional<int> code = ParseRunOptions(arguments, options)) return *code;
  Result<int> code = RecordCommand(options);
  return code ? *code : ReportError(code.error());
}

}  // namespace tlparse
