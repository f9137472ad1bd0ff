#include "runner/process_watch.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "runner/proc_file.h"
#include "runner/process_ranks.h"

namespace tlparse {

namespace {

using SteadyClock = std::chrono::steady_clock;
// Between two looks at all processes: so many times the CPU time of the last one, within limits.
constexpr std::chrono::milliseconds kLeastSearch(100), kMostSearch(1000);
constexpr int kTimesSearch = 100;
constexpr std::chrono::milliseconds kLongestPoll(100);
constexpr std::chrono::milliseconds kLastEnds(500);
constexpr std::int64_t kSettledUs = 3'000'000;
constexpr std::size_t kMostThreads = 20;  // of a process, whose exceptions are kept

std::chrono::nanoseconds ThreadTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

ProcessWatch::ProcessWatch(Child& child, const std::string& identities)
    : child_(child), identities_(identities), busy_(SteadyClock::now()), measured_(busy_) {
  others_.insert(getpid());
  if (child_.guard() > 0) beside_[child_.guard()] = std::nullopt;
  thread_ = std::thread([this] { Follow(); });
}

ProcessWatch::~ProcessWatch() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  thread_.join();
}

std::optional<int> ProcessWatch::WaitForEnd(std::chrono::microseconds longest) {
  std::unique_lock lock(mutex_);
  has_ended_.wait_for(lock, longest, [&] { return code_.has_value(); });
  return code_;
}

std::vector<WatchedProcess> ProcessWatch::Processes() const {
  const std::lock_guard lock(mutex_);
  std::vector<const Entry*> entries;
  for (const Entry& entry : ended_) entries.push_back(&entry);
  for (const auto& [pid, entry] : living_) entries.push_back(&entry);
  std::stable_sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->process.started_us, a->process.pid) <
           std::pair(b->process.started_us, b->process.pid);
  });
  std::vector<WatchedProcess> all;
  std::vector<ToldRank> told;
  for (const Entry* const entry : entries) {
    all.push_back(entry->process);
    told.push_back(entry->told);
  }
  SetRanks(all, told);
  return all;
}

void ProcessWatch::LookNow() {
  const std::lock_guard lock(mutex_);
  ReadIdentities();
  Search();
}

pid_t ProcessWatch::StartBeside(const std::function<pid_t()>& start) {
  const std::lock_guard lock(mutex_);
  const pid_t pid = start();
  if (pid > 0) beside_[pid] = std::nullopt;
  return pid;
}

int ProcessWatch::WaitBeside(pid_t pid) {
  std::unique_lock lock(mutex_);
  has_ended_.wait(lock, [&] { return beside_[pid].has_value(); });
  const int status = *beside_[pid];
  beside_.erase(pid);
  return status;
}

void ProcessWatch::Follow() {
  auto next_search = SteadyClock::now();
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      Reap();
      ReadIdentities();
      LearnOfYoung();
      const auto began = SteadyClock::now();
      if (began >= next_search || command_code_) {
        const std::chrono::nanoseconds before = ThreadTime();
        Search();
        next_search =
            began + std::clamp<SteadyClock::duration>((ThreadTime() - before) * kTimesSearch,
                                                      kLeastSearch, kMostSearch);
      }
      if (began - measured_ >= kIdleStep) MeasureIdle();
      // Its processes may end with it.
      if (command_code_ && (living_.empty() || began - ended_at_ >= kLastEnds)) {
        code_ = command_code_;
        has_ended_.notify_all();
      }
      if (code_ || is_over_) return;
    }
    PollHandles(kLongestPoll);
  }
}

// Our children: the command, and its orphans.
void ProcessWatch::Reap() {
  while (true) {
    int status = 0;
    // Without waiting, so that /proc still tells of a child that was not seen yet.
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
      return;
    const pid_t pid = info.si_pid;
    // Its parent may have ended it, and then itself, because another had ended.
    if (Polled polled = Handles(); polled.Wait(std::chrono::milliseconds(0))) NoteEnds(polled);
    if (const auto beside = beside_.find(pid); beside != beside_.end()) {
      if (waitpid(pid, &status, WNOHANG) == pid) beside->second = status;
      has_ended_.notify_all();
      continue;
    }
    if (!living_.contains(pid)) {
      // One whose end was noted becomes our child where its parent ends without having waited for it.
      const std::optional<ProcStat> stat = ReadProcStat(pid);
      if (!stat || FindEnded(pid, stat->started_ticks) == nullptr) {
        std::set<pid_t> looking;
        others_.erase(pid);
        Adopt(pid, looking);
      }
    }
    const bool ends = info.si_code != CLD_STOPPED;
    if (ends && pid == child_.pid()) child_.Ends(ExitCodeOf(info));
    if (waitpid(pid, &status, WNOHANG | WUNTRACED) != pid) return;
    if (WIFSTOPPED(status)) {
      if (pid == child_.pid() && WSTOPSIG(status) != SIGSTOP) child_.StopWithIt();
      continue;
    }
    if (const auto entry = living_.find(pid); entry != living_.end())
      SetEnd(entry->second, status, NowUs());
    if (pid != child_.pid()) continue;
    command_code_ = ExitCodeOf(status);
    ended_at_ = SteadyClock::now();
    child_.Ended();
  }
}

// New descendants. Whatever is no descendant is looked at once.
void ProcessWatch::Search() {
  const std::vector<pid_t> pids = ListProcesses();
  const std::set<pid_t> present(pids.begin(), pids.end());
  std::erase_if(others_, [&](pid_t pid) { return !present.contains(pid); });
  std::set<pid_t> looking;
  for (const pid_t pid : pids) Adopt(pid, looking);
  std::vector<Entry*> gone;  // without a pidfd nobody reports it
  for (auto& [pid, entry] : living_) {
    if (!entry.handle.is_open() && !present.contains(pid)) gone.push_back(&entry);
  }
  for (Entry* const entry : gone) SetEnd(*entry, std::nullopt, NowUs());
}

// Whether the process is a descendant, which is then followed.
bool ProcessWatch::Adopt(pid_t pid, std::set<pid_t>& looking) {
  if (living_.contains(pid)) return true;
  if (others_.contains(pid) || beside_.contains(pid) || !looking.insert(pid).second) return false;
  const std::optional<ProcStat> stat = ReadProcStat(pid);
  if (!stat) return false;
  const bool is_ours =
      stat->parent == getpid() || (stat->parent > 1 && Adopt(stat->parent, looking));
  if (!is_ours) {
    others_.insert(pid);
    return false;
  }
  Entry entry;
  entry.process.pid = pid;
  entry.process.parent_pid = stat->parent;
  entry.started_ticks = stat->started_ticks;
  entry.process.started_us = EpochUsOfTicks(stat->started_ticks);
  entry.busy = entry.busy_since = SteadyClock::now();
  entry.handle = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  Entry& kept = living_.insert_or_assign(pid, std::move(entry)).first->second;
  Learn(kept);
  busy_ = SteadyClock::now();
  return true;
}

void ProcessWatch::Learn(Entry& entry) {
  if (entry.is_known) return;
  if (std::string command = ReadProcCommand(entry.process.pid); !command.empty())
    entry.process.command = std::move(command);
  if (std::optional<std::string> text = ReadProcVariable(entry.process.pid, "RANK"); text)
    entry.told.text = std::move(text);
}

// Until a process has executed its program, it has the command and environment of its parent.
void ProcessWatch::LearnOfYoung() {
  const std::int64_t now_us = NowUs();
  for (auto& [pid, entry] : living_) {
    if (now_us - entry.process.started_us < kSettledUs) Learn(entry);
  }
}

void ProcessWatch::ReadIdentities() {
  const std::int64_t now_us = NowUs();
  for (ProcessIdentity& identity : identities_.ReadNew()) {
    Entry* const entry = FindIdentified(identity, now_us);
    if (entry == nullptr) continue;
    std::vector<UncaughtException>& in_threads = entry->process.raised_in_threads;
    if (identity.raised && !identity.is_of_thread)
      entry->process.raised = std::move(identity.raised);
    else if (identity.raised && in_threads.size() < kMostThreads)
      in_threads.push_back(*std::move(identity.raised));
    if (!identity.errors.empty()) {
      entry->process.errors = std::move(identity.errors);
      entry->process.errors_from = identity.errors_from;
      continue;
    }
    if (identity.left) entry->process.left = std::move(identity.left);
    if (identity.raised || identity.left) continue;
    if (identity.numbers) {
      entry->told.numbers = *std::move(identity.numbers);
      entry->told.function = std::move(identity.command);
      continue;
    }
    entry->is_known = true;
    entry->told.is_member = identity.is_member;
    entry->told.text = std::move(identity.rank_text);
    if (!identity.command.empty()) entry->process.command = std::move(identity.command);
    // An orphan has another parent than the one that started it.
    entry->process.parent_pid = identity.parent_pid;
  }
}

// nullptr: it has not ended, or is no descendant.
ProcessWatch::Entry* ProcessWatch::FindEnded(pid_t pid, std::int64_t started_ticks) {
  const auto found = std::find_if(ended_.rbegin(), ended_.rend(), [&](const Entry& entry) {
    return entry.process.pid == pid && entry.started_ticks == started_ticks;
  });
  return found == ended_.rend() ? nullptr : &*found;
}

// nullptr: it is no descendant.
ProcessWatch::Entry* ProcessWatch::FindIdentified(const ProcessIdentity& identity,
                                                  std::int64_t now_us) {
  if (Entry* const ended = FindEnded(identity.pid, identity.started_ticks)) return ended;
  if (!living_.contains(identity.pid)) {
    std::set<pid_t> looking;
    others_.erase(identity.pid);
    Adopt(identity.pid, looking);
  }
  const auto living = living_.find(identity.pid);
  if (living != living_.end() && living->second.started_ticks == identity.started_ticks)
    return &living->second;
  const std::optional<ProcStat> stat = ReadProcStat(identity.pid);
  if (stat && stat->started_ticks == identity.started_ticks) return nullptr;
  // It has ended, and its parent has waited for it. Which of those that are read at once was the first,
  // is not known: they have one time.
  Entry entry;
  entry.process.pid = identity.pid;
  entry.started_ticks = identity.started_ticks;
  entry.process.started_us = EpochUsOfTicks(identity.started_ticks);
  entry.process.ended_us = now_us;
  busy_ = SteadyClock::now();
  ended_.push_back(std::move(entry));
  return &ended_.back();
}

void ProcessWatch::NoteEnd(Entry& entry, std::int64_t now_us) {
  // Our own children are waited for by Reap.
  std::optional<int> status;
  const std::optional<ProcStat> stat = ReadProcStat(entry.process.pid);
  if (stat && stat->started_ticks == entry.started_ticks) {
    if (stat->parent == getpid()) return;
    // X: its parent is waiting for it at this moment.
    if ((stat->state == 'Z' || stat->state == 'X') && stat->is_own) status = stat->wait_status;
  }
  if (!status) status = KeptStatus(entry.handle.get());
  SetEnd(entry, status, now_us);
}

void ProcessWatch::SetEnd(Entry& entry, std::optional<int> wait_status, std::int64_t now_us) {
  entry.process.ended_us = now_us;
  if (wait_status && WIFSIGNALED(*wait_status)) entry.process.signal = WTERMSIG(*wait_status);
  if (wait_status && WIFEXITED(*wait_status)) entry.process.exit_code = WEXITSTATUS(*wait_status);
  busy_ = SteadyClock::now();
  entry.handle.Close();
  ended_.push_back(std::move(entry));
  const pid_t pid = ended_.back().process.pid;
  living_.erase(pid);
  others_.insert(pid);  // until its parent has waited for it
}

bool ProcessWatch::Polled::Wait(std::chrono::milliseconds longest) {
  return poll(handles.data(), handles.size(), static_cast<int>(longest.count())) > 0;
}

ProcessWatch::Polled ProcessWatch::Handles() const {
  Polled polled;
  for (const auto& [pid, entry] : living_) {
    if (!entry.handle.is_open()) continue;
    polled.handles.push_back({entry.handle.get(), POLLIN, 0});
    polled.pids.push_back(pid);
  }
  return polled;
}

void ProcessWatch::PollHandles(std::chrono::milliseconds longest) {
  Polled polled;
  {
    const std::lock_guard lock(mutex_);
    polled = Handles();
  }
  if (!polled.Wait(longest)) return;
  const std::lock_guard lock(mutex_);
  NoteEnds(polled);
}

// Of those that are seen together, none is known to be the first: they have one time.
void ProcessWatch::NoteEnds(const Polled& polled) {
  const std::int64_t now_us = NowUs();
  for (std::size_t i = 0; i < polled.handles.size(); ++i) {
    const auto entry = living_.find(polled.pids[i]);
    if (polled.handles[i].revents != 0 && entry != living_.end()) NoteEnd(entry->second, now_us);
  }
}

}  // namespace tlparse
