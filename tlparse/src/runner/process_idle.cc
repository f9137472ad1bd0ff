// Which processes of a command use the CPU.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runner/proc_file.h"
#include "runner/process_watch.h"

namespace tlparse {

namespace {

// Of one CPU, and once: what a process may use that is idle.
constexpr double kIdleUse = 0.02, kIdleBurstS = 0.05;

}  // namespace

std::chrono::seconds ProcessWatch::IdleTime() const {
  const std::lock_guard lock(mutex_);
  return std::chrono::duration_cast<std::chrono::seconds>(measured_ - busy_);
}

// Threads that watch (of PyTorch, of backends) use a little in each process of a job that hangs, and
// now and then more: what counts is the use of one process since all have been idle.
void ProcessWatch::MeasureIdle() {
  const auto now = std::chrono::steady_clock::now();
  const auto is_idle = [now](std::int64_t ticks, std::chrono::steady_clock::time_point since) {
    const std::chrono::duration<double> idle = now - since;
    const double most_s = kIdleUse * idle.count() + kIdleBurstS;
    return static_cast<double>(ticks) <= most_s * static_cast<double>(sysconf(_SC_CLK_TCK));
  };
  bool is_busy = false;
  for (auto& [pid, entry] : living_) {
    const std::optional<ProcStat> stat = ReadProcStat(pid);
    if (!stat) continue;
    entry.cpu_ticks = stat->cpu_ticks;
    // One that could run and gets no CPU is not idle: others use it.
    const bool can_run = stat->state == 'R';
    is_busy = is_busy || can_run || !is_idle(entry.cpu_ticks - entry.idle_cpu_ticks, busy_);
    if (!can_run && is_idle(entry.cpu_ticks - entry.own_cpu_ticks, entry.busy)) continue;
    // A single look at which it was idle is a pause of its work.
    if (now - entry.busy >= kIdleStep * 3) entry.busy_since = now;
    entry.busy = now;
    entry.own_cpu_ticks = entry.cpu_ticks;
  }
  measured_ = now;
  if (!is_busy) return;
  busy_ = now;
  for (auto& [pid, entry] : living_) entry.idle_cpu_ticks = entry.cpu_ticks;
}

std::optional<std::vector<std::int64_t>> ProcessWatch::BusyAlone(std::chrono::seconds least) const {
  std::vector<std::int64_t> ranks;
  bool do_others_wait = false, is_unsure = false;
  for (const WatchedProcess& one : Processes()) {
    const std::lock_guard lock(mutex_);
    const auto living = living_.find(one.pid);
    if (living == living_.end() || one.ended_us) continue;
    const Entry& entry = living->second;
    if (measured_ - entry.busy >= least) {
      do_others_wait = do_others_wait || one.rank;
    } else if (!one.rank) {
      return std::vector<std::int64_t>();
    } else if (entry.busy < measured_ || measured_ - entry.busy_since < least) {
      is_unsure = true;
    } else {
      ranks.push_back(*one.rank);
    }
  }
  if (is_unsure) return std::nullopt;
  std::sort(ranks.begin(), ranks.end());
  return do_others_wait ? ranks : std::vector<std::int64_t>();
}

bool ProcessWatch::IsProgramAtWork(const std::vector<std::int64_t>& ranks) const {
  std::map<pid_t, const WatchedProcess*> by_pid;
  const std::vector<WatchedProcess> all = Processes();
  for (const WatchedProcess& one : all) by_pid[one.pid] = &one;
  const auto is_below = [&](const WatchedProcess* one) {
    for (std::size_t i = 0; one != nullptr && i < all.size(); ++i) {
      if (one->rank) return std::find(ranks.begin(), ranks.end(), *one->rank) != ranks.end();
      const auto parent = by_pid.find(one->parent_pid);
      one = parent == by_pid.end() ? nullptr : parent->second;
    }
    return ranks.empty();
  };
  const std::lock_guard lock(mutex_);
  return std::any_of(living_.begin(), living_.end(), [&](const auto& living) {
    const auto& [pid, entry] = living;
    const auto known = by_pid.find(pid);
    return pid != child_.pid() && !entry.is_known && known != by_pid.end() &&
           measured_ - entry.busy <= kIdleStep && is_below(known->second);
  });
}

}  // namespace tlparse
