// What /proc says of one process. All of it may be gone at any time: nothing then.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tlparse {

struct ProcStat {
  pid_t parent = 0;
  char state = '?';                // 'Z': it has ended and was not waited for; 'X': just now it is
  std::int64_t cpu_ticks = 0;      // user and system, without its children
  std::int64_t started_ticks = 0;  // since the machine was started
  int wait_status = 0;             // of a process in state 'Z' or 'X' that belongs to this user
  bool is_own = false;             // it belongs to this user
};
std::optional<ProcStat> ReadProcStat(pid_t pid);

// Every process.
std::vector<pid_t> ListProcesses();

// Of the environment that it was started with.
std::optional<std::string> ReadProcVariable(pid_t pid, const std::string& name);
// Arguments with spaces between them, at most some 4,000 bytes; empty: a process of the kernel, or
// one that has ended.
std::string ReadProcCommand(pid_t pid);
// Whether it has a handler for the signal.
bool HandlesSignal(pid_t pid, int number);
// A signal that was sent is handled when none is pending and as many threads block it as before: a
// thread does so while its handler runs.
struct SignalState {
  std::size_t blocking = 0;  // threads
  bool is_pending = false;   // of the process, or of a thread
};
SignalState StateOfSignal(pid_t pid, int number);
// Whether it has the file open.
bool HasOpen(pid_t pid, const std::string& path);

// What the kernel keeps of a process that was waited for, by its pidfd: the status of waitpid.
std::optional<int> KeptStatus(int handle);

// started_ticks as microseconds since the epoch.
std::int64_t EpochUsOfTicks(std::int64_t ticks);

}  // namespace tlparse
