// What the Python processes of a command write of themselves: the hook of `tlparse run`
// (sitecustomize.py) appends a line when a process starts, another when it joins a process group, and
// one when an exception ends it, a thread or a task, or when it leaves with an exit code. So a process
// is known that lives shorter than the time between two looks at /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tlparse {

// The exception that ends a Python process, a thread or a task of asyncio: nothing has caught it.
struct UncaughtException {
  std::int64_t raised_us = 0;  // since the epoch: when nothing had caught it
  std::string traceback;       // as Python prints it
  std::string thread;          // its name, if it ended a thread or a task
  bool is_of_task = false;
};

// Where a Python process called sys.exit or os._exit. It may have caught what that raises.
struct LeftWith {
  int exit_code = 0;
  std::string stack;                        // innermost first, as faulthandler prints it
  std::optional<UncaughtException> raised;  // what it was handling
};

struct ProcessIdentity {
  pid_t pid = 0, parent_pid = 0;
  std::int64_t started_ticks = 0;  // as ProcStat's
  std::optional<std::string> rank_text;
  // File of its standard error, and its size then; empty: it is none. Then without rank and command.
  std::string errors;
  std::int64_t errors_from = 0;
  bool is_member = false;  // the rank is that of its process group, not RANK of its environment
  std::string command;     // arguments with spaces between them
  std::optional<UncaughtException> raised;  // then without rank and command
  bool is_of_thread = false;                // …or task, which it ended
  std::optional<LeftWith> left;             // then without rank and command
  // Of a process of multiprocessing: its arguments, where they are whole numbers ("1,,3"). Then the
  // command is its function.
  std::optional<std::string> numbers;
};

class IdentityFile {
 public:
  // The file need not exist. Empty: there is none, and no line.
  explicit IdentityFile(std::string path);

  // The lines that are new since the last call. Those of other machines and of containers, whose
  // process ids are not ours, and damaged ones are left out.
  std::vector<ProcessIdentity> ReadNew();

 private:
  std::string path_, machine_;
  std::int64_t offset_ = 0;
};

}  // namespace tlparse
