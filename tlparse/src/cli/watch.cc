// tlparse watch <directory>: ingest while the job runs.
#include "cli/watch.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include "base/file_events.h"
#include "base/file_system.h"
#include "cli/budget.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "cli/watch_end.h"
#include "cli/watch_options.h"
#include "cli/watch_page.h"
#include "cli/watch_rhythm.h"
#include "cli/watch_view.h"
#include "facts/ranks/job_facts.h"
#include "import/follower.h"
#include "import/importer.h"
#include "import/run_state.h"
#include "inputs/find_inputs.h"
#include "log/standard_feed.h"
#include "report/output_directory.h"

namespace tlparse {

namespace {

using Clock = WatchRhythm::Clock;

constexpr std::chrono::milliseconds kFeedStep(1000);  // of standard input
// A lock of another program is reported after the first of these times. After the second, a watch that
// was asked to stop ends.
constexpr std::chrono::seconds kReportedLock(3), kLongestLock(10);
constexpr std::chrono::seconds kLeastSearch(1);  // between two looks for new files

std::atomic<bool> stop_asked = false;
void AskToStop(int) { stop_asked = true; }

std::int64_t EpochUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

class Watch {
 public:
  // `job`: of WatchJob, or null.
  explicit Watch(const WatchOptions& options, StartedJob* job = nullptr)
      : options_(options),
        job_(job),
        run_(options.run.value_or(options.input == "-" ? "stdin" : options.input)),
        rhythm_(Terminal::Out().is_terminal || options.json || options.serve ||
                !options.alerts.empty()),
        view_({run_, options.world_size, options.json, options.only_findings}, options.alerts,
              options.command) {}

  Result<int> Run();

 private:
  Result<void> PrepareDatabase();
  Result<void> StartPage();
  Result<void> Search();
  Result<void> SearchDirectory(const std::string& directory);
  Result<void> Follow();
  Result<void> FollowJob();
  Result<void> ReadOnce();
  Result<void> Look(bool is_last);
  Result<void> WriteRoles(Database& database);  // for others that read it
  LiveJob Live() const;
  bool IsIdle() const;
  void WaitForNextStep();
  bool WaitForLock(std::chrono::milliseconds waited);
  void SayUnlocked();
  Result<void> Complete();

  const WatchOptions& options_;
  StartedJob* job_;
  std::string run_;
  WatchRhythm rhythm_;
  WatchView view_;
  std::string database_path_;
  std::optional<Directory> directory_;
  std::unique_ptr<Follower> follower_;
  FileEvents events_;
  std::optional<StandardFeed> feed_;  // the directory is "-"
  std::unique_ptr<WatchPage> page_;   // --serve
  std::optional<Clock::time_point> searched_;
  Clock::duration search_took_{};
  bool said_locked_ = false;
  bool was_stopped_ = false;
  std::string why_ended_;
};

// The database of an output directory that an earlier watch left unfinished is continued.
Result<void> Watch::PrepareDatabase() {
  if (options_.database) {
    database_path_ = *options_.database;
    return {};
  }
  const auto exists = [&](const char* name) {
    return access((options_.output + name).c_str(), F_OK) == 0;
  };
  const bool is_unfinished =
      options_.is_output_made || (exists("/trace.db") && !exists("/compile_directory.json") &&
                                  !exists("/index.html") && !options_.overwrite);
  Result<Directory> directory = is_unfinished
                                    ? OpenOutputDirectory(options_.output)
                                    : CreateOutputDirectory(options_.output, options_.overwrite);
  if (!directory) return tl::unexpected<Error>(std::move(directory).error());
  directory_ = std::move(*directory);
  database_path_ = options_.output + "/trace.db";
  return {};
}

Result<void> Watch::StartPage() {
  if (!options_.serve) return {};
  const std::string source = options_.input == "-" ? "standard input" : options_.input;
  ASSIGN_OR_RETURN(page_,
                   WatchPage::Start(*options_.serve, source, database_path_, follower_->run_id()));
  std::fprintf(stderr, "tlparse: the page is %s\n", page_->url().c_str());
  return {};
}

// New files. A file that is not a log yet may become one.
Result<void> Watch::Search() {
  if (feed_) {
    for (const FoundLog& log : feed_->logs()) RETURN_IF_ERROR(follower_->Add(log));
    return {};
  }
  const auto began = Clock::now();
  if (searched_ && began - *searched_ < std::max<Clock::duration>(kLeastSearch, 50 * search_took_))
    return {};
  RETURN_IF_ERROR(SearchDirectory(options_.input));
  for (const std::string& directory : options_.more_inputs)
    RETURN_IF_ERROR(SearchDirectory(directory));
  searched_ = Clock::now();
  search_took_ = *searched_ - began;
  return {};
}

Result<void> Watch::SearchDirectory(const std::string& directory) {
  Result<FoundLogs> found = FindLogs(directory);
  if (!found) {
    // The directory itself may come back; at the start it must be there.
    if (!searched_ && directory == options_.input)
      return tl::unexpected<Error>(std::move(found).error());
    return {};
  }
  struct stat status {};
  if (stat(directory.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) events_.Add(directory);
  for (const FoundLog& log : found->logs) {
    const std::size_t slash = log.path.rfind('/');
    events_.Add(slash == std::string::npos ? "." : log.path.substr(0, slash));
    RETURN_IF_ERROR(follower_->Add(log));
  }
  return {};
}

LiveJob Watch::Live() const {
  LiveJob live;
  live.now_us = EpochUs();
  for (const LogGrowth& log : follower_->Growth()) {
    if (log.has_rows)
      live.logs[log.path] = {std::max<std::int64_t>(0, live.now_us - log.grown_at_us),
                             log.has_grown, log.is_removed};
  }
  return live;
}

Result<void> Watch::WriteRoles(Database& database) {
  const bool is_outermost = sqlite3_get_autocommit(database.handle()) != 0;
  if (is_outermost) RETURN_IF_ERROR(database.Execute("BEGIN IMMEDIATE"));
  RETURN_IF_ERROR(WriteLiveJobFacts(database, follower_->run_id()));
  return is_outermost ? database.Execute("COMMIT") : Result<void>();
}

Result<void> Watch::Look(bool is_last) {
  const double began_s = CpuSeconds();
  Database& database = follower_->database();
  const bool is_known = view_.HasRows() && !rhythm_.HasNewsToView() && !is_last;
  if (!is_known) RETURN_IF_ERROR(view_.Read(database));
  view_.Look(Live());
  const double read_s = CpuSeconds();
  if (view_.HasRows() &&
      (is_last || rhythm_.AreFindingsDue(view_.HasTurned(), view_.MayBeStuck()))) {
    RETURN_IF_ERROR(WriteRoles(database));
    RETURN_IF_ERROR(view_.Find(database));
    rhythm_.NoteFindings(CpuSeconds() - read_s);
    if (job_ != nullptr && !is_last) job_->SeeFindings(view_.Findings());
  }
  if (page_) view_.Publish(page_->state());
  view_.Show(is_last);
  rhythm_.NoteView(read_s - began_s);
  return {};
}

// Counted from the last byte, never before the first log.
bool Watch::IsIdle() const {
  if (!options_.until_idle_s) return false;
  const LiveJob live = Live();
  if (live.logs.empty()) return false;
  const std::int64_t idle_us = *options_.until_idle_s * 1'000'000;
  return std::all_of(live.logs.begin(), live.logs.end(),
                     [&](const auto& log) { return log.second.quiet_us >= idle_us; });
}

void Watch::WaitForNextStep() {
  const auto next = rhythm_.NextStep();
  events_.Wait(std::chrono::ceil<std::chrono::milliseconds>(Clock::Real(next - Clock::now())));
  // What is written at once is read at once.
  const auto rest = Clock::Real(next - Clock::now());
  if (rest.count() > 0 && !stop_asked) usleep(static_cast<useconds_t>(rest.count()));
}

bool Watch::WaitForLock(std::chrono::milliseconds waited) {
  if (!said_locked_ && waited >= kReportedLock) {
    said_locked_ = true;
    view_.Say(
        fmt::format("another program has locked the database '{}'; logs are not read until it "
                    "releases it",
                    database_path_));
  }
  return !stop_asked || waited < kLongestLock;
}

void Watch::SayUnlocked() {
  if (std::exchange(said_locked_, false))
    view_.Say(fmt::format("the database '{}' is not locked any more", database_path_));
}

Result<void> Watch::Follow() {
  while (!stop_asked) {
    RETURN_IF_ERROR(ReadOnce());
    if (rhythm_.IsViewDue()) RETURN_IF_ERROR(Look(false));
    if (IsIdle()) {
      why_ended_ = fmt::format("no log has grown for {} s", *options_.until_idle_s);
      return {};
    }
    if (feed_) {
      ASSIGN_OR_RETURN(const bool has_more, feed_->Read(kFeedStep));
      if (has_more) continue;
      RETURN_IF_ERROR(Search());
      RETURN_IF_ERROR(follower_->Step());
      why_ended_ = "standard input has ended";
      return {};
    }
    WaitForNextStep();
  }
  was_stopped_ = true;
  why_ended_ = "tlparse was asked to stop";
  return {};
}

// A step, and what follows from it.
Result<void> Watch::ReadOnce() {
  const auto began = Clock::now();
  RETURN_IF_ERROR(Search());
  ASSIGN_OR_RETURN(const FollowStep step, follower_->Step());
  SayUnlocked();
  rhythm_.NoteStep(began, step.has_changed);
  if (page_) page_->state().SetLooked(step.has_changed);
  return {};
}

// Until the job has ended. What it wrote last is read afterwards.
Result<void> Watch::FollowJob() {
  bool has_ended = false;
  while (!has_ended) {
    RETURN_IF_ERROR(ReadOnce());
    if (rhythm_.IsViewDue()) RETURN_IF_ERROR(Look(false));
    has_ended = job_->WaitForEnd(Clock::Real(rhythm_.NextStep() - Clock::now()));
  }
  searched_.reset();
  RETURN_IF_ERROR(ReadOnce());
  return job_->Complete();
}

// What only the end of a load makes: logs that changed meanwhile, profiles, joins, indexes, one
// file. Then the tree and the page.
Result<void> Watch::Complete() {
  RETURN_IF_ERROR(follower_->Finish());
  const std::map<std::string, LiveLog> logs = Live().logs;
  FoundInputs found = FindOtherInputs(options_);
  std::erase_if(found.logs, [&](const FoundLog& log) {
    if (follower_->Holds(log)) return true;
    if (access(log.path.c_str(), R_OK) == 0) return false;
    found.skipped.push_back(SkippedFile::Unread(log.path, std::strerror(errno)));
    return true;
  });
  if (page_) page_->BeginEnd();
  follower_.reset();
  ImportOptions import;
  import.database_path = database_path_;
  import.run_name = run_;
  import.append = import.ends_watch = true;
  import.runtime_inputs = found.runtime;
  import.derive = &WriteJobFacts;
  import.wait_for_locks = [this](auto waited) { return WaitForLock(waited);
};
if (access(database_path_.c_str(), F_OK) != 0) {
  return Fail(ErrorCode::kIo,
              fmt::format("the database '{}' was removed while it was written", database_path_));
}
if (AreEmptyFiles(logs) && found.logs.empty() && found.runtime.empty()) {
  std::fputs(logs.empty() ? "tlparse: no log has come\n" : "tlparse: the logs are empty\n", stderr);
  return {};
}
ASSIGN_OR_RETURN(const ImportSummary summary, ImportLogs(found.logs, found.skipped, import));
if (const std::string wal = database_path_ + "-wal"; access(wal.c_str(), F_OK) == 0) {
  std::fprintf(stderr,
               "tlparse: another program reads the database: until it closes it, '%s' is a part "
               "of the database\n",
               Printable(wal).c_str());
}
if (options_.database) return {};
return WriteWatchReport(options_, *directory_, database_path_, summary.run_id);
}  // namespace

Result<int> Watch::Run() {
  struct stat status {};
  if (options_.input == "-" && options_.once)
    return Fail(ErrorCode::kUsage,
                "--once shows a directory; standard input is watched until it ends, or with "
                "--until-idle until nothing comes");
  if (options_.input != "-" && stat(options_.input.c_str(), &status) != 0)
    return Fail(ErrorCode::kNotFound,
                fmt::format("'{}': there is no such directory", options_.input));
  RETURN_IF_ERROR(PrepareDatabase());
  ASSIGN_OR_RETURN(
      follower_, Follower::Open({database_path_, run_, IsOnNetwork(DirectoryOf(database_path_))}));
  follower_->database().WaitForLocks([this](auto waited) { return WaitForLock(waited); });
  RETURN_IF_ERROR(StartPage());
  if (options_.input == "-") feed_.emplace(DirectoryOf(database_path_));
  if (options_.once) {
    RETURN_IF_ERROR(Search());
    RETURN_IF_ERROR(follower_->Step());
  } else if (job_ != nullptr) {
    RETURN_IF_ERROR(FollowJob());
  } else {
    RETURN_IF_ERROR(Follow());
  }
  RETURN_IF_ERROR(Look(true));
  RETURN_IF_ERROR(Complete());
  if (page_) {
    page_->End(why_ended_, options_.database ? "" : options_.output + "/index.html");
    page_.reset();
  }
  view_.ShowEnd(database_path_);
  if (!options_.json && job_ == nullptr)
    std::puts(
        Printable(options_.database ? database_path_ : options_.output + "/index.html").c_str());
  const bool is_ok = was_stopped_ || options_.once || !view_.HasError();
  if (!HasLimit(options_.budget)) return is_ok ? kExitDone : kExitNo;
  ASSIGN_OR_RETURN(const bool is_in_budget, CheckWatchBudget(options_, database_path_, run_));
  return is_ok && is_in_budget ? kExitDone : kExitNo;
}

void InstallSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    action.sa_handler = AskToStop;
    action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second one ends the process
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

}  // namespace tlparse

Result<int> WatchJob(const WatchOptions& options, StartedJob& job) {
  return Watch(options, &job).Run();
}

int RunWatch(std::span<const std::string> arguments) {
  WatchOptions options;
  if (const std::optional<int> code = ParseWatchOptions(arguments, options)) return *code;
  InstallSignals();
  Result<int> code = Watch(options).Run();
  return code ? *code : ReportError(code.error());
}

}  // namespace tlparse
