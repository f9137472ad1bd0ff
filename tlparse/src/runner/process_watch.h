// Follows the processes of a command: which there are, and how each ends.
//
// New processes are searched for in /proc up to 1 s apart; one that has the hook of `tlparse run`
// says itself who it is (identity_file.h), however short it lives.
//
// A descendant is waited for by its own parent, so its end is seen here only if this process looks
// before that parent has waited for it, or if the kernel keeps it (Linux 6.15 and newer): otherwise
// the process has an end, but neither exit code nor signal.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "runner/child.h"
#include "runner/identity_file.h"

namespace tlparse {

struct WatchedProcess {
  pid_t pid = 0;
  pid_t parent_pid = 0;  // when it was first seen
  // Of its process group, else an argument that is the rank of others like it; else RANK of its
  // environment, unless a parent or a child has that rank (process_ranks.h).
  std::optional<std::int64_t> rank;
  std::string command;
  std::int64_t started_us = 0;           // since the epoch
  std::optional<std::int64_t> ended_us;  // nothing: it lives on
  std::optional<int> exit_code, signal;  // at most one; neither: not known
  std::optional<UncaughtException> raised;
  std::vector<UncaughtException> raised_in_threads;  // the first ones
  std::optional<LeftWith> left;                      // the last call
  // "file:line in f, which called g" when a signal ended it, or where it left; empty: not known
  std::string at;
  std::string errors;            // file of its standard error; empty: none, or not known
  std::int64_t errors_from = 0;  // its size when the process began
  std::string fault_thread;  // in which a fatal one came: FaultOf (python_stack.h); empty: none did
};

// Its own thread follows the processes. Other functions may be called by any thread.
// What is known of a process's rank.
struct ToldRank {
  std::optional<std::string> text;
  bool is_member = false;         // of its process group, else of its environment
  std::string numbers, function;  // as of ProcessIdentity
};

// Follows the processes in its own thread. Its functions may be called by any other one.
class ProcessWatch {
 public:
  // `child` was started, and outlives this. `identities`: the file of its processes' identities;
  // empty: none.
  ProcessWatch(Child& child, const std::string& identities);
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;  // its thread refers to it
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  // Waits until the command has ended, and its other processes or half a second have passed; at most
  // so long. Its exit code, if it has ended.
  std::optional<int> WaitForEnd(std::chrono::microseconds longest);
  // Those that were seen, in order of their starts: the command first.
  std::vector<WatchedProcess> Processes() const;
  // Searches for new processes without waiting for the next time.
  void LookNow();
  // Calls `start`, which starts a process that is no part of the command, and returns its id.
  pid_t StartBeside(const std::function<pid_t()>& start);
  // Its status of waitpid when it has ended. Call it once for each.
  int WaitBeside(pid_t pid);
  // How long no living process has used the CPU to speak of (2 % of one) or has begun or ended.
  std::chrono::seconds IdleTime() const;
  // Ranks that alone have used the CPU for so long, while no other rank has; ascending. Empty: there are
  // none, or another process uses it. Nothing: a rank has used it for a part of the time, so the next looks
  // will tell.
  std::optional<std::vector<std::int64_t>> BusyAlone(std::chrono::seconds least) const;
  // Whether a program that is not Python with our hook, such as a compiler, used the CPU just now below one
  // of these ranks; of no ranks: of the command.
  bool IsProgramAtWork(const std::vector<std::int64_t>& ranks) const;

 private:
  static constexpr std::chrono::seconds kIdleStep{2};  // between two looks at what they use
  struct Entry {
    WatchedProcess process;
    FileDescriptor handle;  // a pidfd
    std::int64_t started_ticks = 0;
    std::int64_t cpu_ticks = 0;
    std::int64_t idle_cpu_ticks = 0;                        // when all were busy last
    std::int64_t own_cpu_ticks = 0;                         // when this one was
    std::chrono::steady_clock::time_point busy = {};        // the last look that found it busy
    std::chrono::steady_clock::time_point busy_since = {};  // the first of those in a row
    ToldRank told;
    bool is_known = false;  // it has said who it is
  };
  struct Polled {
    std::vector<pollfd> handles;
    std::vector<pid_t> pids;
    bool Wait(std::chrono::milliseconds longest);  // whether one has ended
  };
  void Follow();
  void Reap();
  void Search();
  bool Adopt(pid_t pid, std::set<pid_t>& looking);
  void Learn(Entry& entry);
  void LearnOfYoung();
  void ReadIdentities();
  Entry* FindEnded(pid_t pid, std::int64_t started_ticks);
  Entry* FindIdentified(const ProcessIdentity& identity, std::int64_t now_us);
  void MeasureIdle();
  void NoteEnd(Entry& entry, std::int64_t now_us);
  void SetEnd(Entry& entry, std::optional<int> wait_status, std::int64_t now_us);
  Polled Handles() const;
  void NoteEnds(const Polled& polled);
  void PollHandles(std::chrono::milliseconds longest);

  Child& child_;
  mutable std::mutex mutex_;
  IdentityFile identities_;
  std::condition_variable has_ended_;
  std::map<pid_t, Entry> living_;
  std::vector<Entry> ended_;
  std::set<pid_t> others_;                      // processes that are not the command's
  std::map<pid_t, std::optional<int>> beside_;  // those of StartBeside, and their status
  std::optional<int> command_code_, code_;      // the latter when the last ends were waited for
  std::chrono::steady_clock::time_point busy_, measured_, ended_at_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace tlparse
