// The command of `tlparse run`: started in a process group of its own with our standard input,
// output and error; signals that we get are passed on to it.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace tlparse {

// One at a time: it changes what signals do to this process, and makes it the parent of orphans
// among its descendants.
class Child {
 public:
  Child() = default;
  ~Child();
  Child(const Child&) = delete;  // signal handlers know it
  Child& operator=(const Child&) = delete;

  // Searches PATH as execvp does. If our group is the terminal's foreground group, the command's
  // becomes that. Where SIGKILL ends this process the command gets SIGTERM; a fault of this process
  // waits for the command. kNotFound: there is no such program; kIo: it cannot be executed. Call it before
  // other threads are started.
  Result<void> Start(const std::vector<std::string>& command,
                     const std::vector<std::string>& environment);
  pid_t pid() const { return pid_; }
  pid_t guard() const { return guard_; }  // our child, and no part of the command; -1: none

  // Call it when waitpid reports that the command was stopped (Ctrl+Z): with the terminal handed
  // over, stops this process as well, and continues the command when this one is continued.
  void StopWithIt();
  // Call it when waitid has reported the end (WNOWAIT), before the command is waited for: the exit code
  // of this process where a fault ends it from then on.
  void Ends(int code);
  // Call it when waitpid has reported the end: takes the terminal back. From now on a signal that
  // asks this process to end ends it with the exit code of the command.
  void Ended();

 private:
  void TakeTerminal(pid_t group);

  pid_t pid_ = -1, guard_ = -1;
  FileDescriptor guarded_;   // the guard ends with it
  FileDescriptor terminal_;  // open if its foreground group was handed over
};

// The exit code of a command that ended with this status of waitpid: 128 + n for signal n.
int ExitCodeOf(int wait_status);
int ExitCodeOf(const siginfo_t& ended);  // of waitid

}  // namespace tlparse
