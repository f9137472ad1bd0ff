// How the processes of a job ended, where `tlparse run` started it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/job/traceback_lines.h"
#include "store/database.h"

namespace tlparse {

class Job;

// An exception that nothing caught.
struct FatalException {
  std::int64_t id = 0;  // of uncaught_exception
  std::optional<std::int64_t> rank;
  std::string type, message;
  std::string file;  // of the innermost line of the user's; empty: none is
  std::int64_t line = 0;
  std::optional<std::int64_t> raised_us;
  std::string path;  // of the input that names it
  std::string from;  // the type and message of that from which it was raised, if it says more
  std::string raiser =
      {};  // "EngineCore (pid 20)" of vLLM, "The program"; empty: its rank, or not known
  TracebackLines lines = {};
  bool is_beside =
      false;  // of a text: a thread or a child process raised it, and its program may go on

  // "FloatingPointError: gradient is not finite": the first line of the message, cut at the end of a
  // sentence where it is long; ", from KeyError: 'loss'" behind it.
  std::string Text() const;
  // What the message says beyond Text(), as a sentence after others, cut; empty: nothing.
  std::string Rest() const;
  // vLLM: "Worker failed with error '…', please check the stack trace above for the root cause".
  bool PointsAbove() const;
  // Its message says that another process was gone: that one failed first.
  bool ComesOfPeer() const;
  // It waited too long for other processes.
  bool IsTimeout() const;
  // One of these, or of another process or thread of the program itself.
  bool HasWaited() const;
  // "f4.py:27"; empty: no line is known.
  std::string Place() const;
  // The ranks that failed, where its message names them, as that of a checkpoint's exception, which all ranks
  // raise: ascending.
  std::vector<std::int64_t> FailedRanks() const;
};

// The type and message of that from which a traceback's exception was raised; empty: `message` has it.
std::string RaisedFrom(std::string_view traceback, std::string_view message);

// Of a row of a query that has the columns of uncaught_exception, with its id.
template <typename Row>
FatalException ExceptionOfRow(const Row& row, std::optional<std::int64_t> rank) {
  return {*row.exception_id,
          rank,
          std::string(row.type),
          std::string(row.message),
          std::string(row.user_file),
          row.user_line,
          row.raised_us,
          std::string(row.path),
          RaisedFrom(row.traceback, row.message),
          {},
          LinesOfTraceback(row.traceback, row.user_file, row.user_line)};
}

using Exceptions = std::vector<const FatalException*>;

// The ranks that raised one exception: the same text at the same line, numbers aside.
struct Raisers {
  std::vector<std::int64_t> ranks;  // ascending; empty: the command
  bool are_everyone = false;        // there are several, and `known` has no other
};
// `known`: the ranks of the job. An exception which says that another process was gone is of its rank
// alone: which one was gone first is the question.
Raisers WhoRaised(const FatalException& raised, const Exceptions& all,
                  const std::set<std::int64_t>& known);

// Ranks whose exceptions came at one line.
struct RaisedTogether {
  std::string place;
  std::vector<std::int64_t> ranks;  // ascending
  const FatalException* first = nullptr;
};
// Of exceptions that say that others did not come or were gone, the lines from which they came: those of
// most ranks first. Nothing of them if one is another, or has no line.
std::vector<RaisedTogether> WhereTheyWaited(const Exceptions& raised);

struct ProcessExit {
  std::int64_t profile_id = 0, ordinal = 0;  // its row of run_process
  std::int64_t pid = 0;
  std::optional<std::int64_t> rank;        // nothing: the command, or a process without rank
  std::optional<std::int64_t> process_id;  // of `process`: its log is here
  std::string host;
  std::string command;                               // program and arguments
  std::optional<std::int64_t> started_us, ended_us;  // no end: it lived on
  std::optional<std::int64_t> exit_code, signal;     // at most one; neither: not known

  // Where a signal ended it, or where it left with its exit code: "a.py:21 in f, which called g"; empty: not
  // known.
  std::string stopped_at;
  std::string fault_thread;  // of run_process
  std::string printed;       // by C++ or the C library before it was aborted; empty: not known
  std::optional<FatalException> raised;

  bool IsCommand() const { return ordinal == 0 && !rank; }
  bool HasFailed() const { return signal || exit_code.value_or(raised ? 1 : 0) != 0; }
  // It raised and went on, as an interactive shell does, whose exit code is then 0: the exception is the
  // last that it showed.
  bool WentOn() const { return raised && exit_code == 0; }
  // Both lived at one time, as far as is known: processes before a restart did not.
  bool RanBeside(const ProcessExit& other) const;
  // Somebody asked it to end: the user, a launcher whose other rank has failed, a scheduler.
  bool WasAsked() const;
};

// Of the ranks, of the command that started them, and of others that have a log, raised an exception or
// were started by the command itself, in order of their ends; of those that raised an
// exception in order of these. Empty: no run.json was read.
Result<std::vector<ProcessExit>> LoadExits(Database& database, std::int64_t run_id);

// Of all participants.
std::vector<std::int64_t> ProcessesOf(const Job& job);
// Of these the ones that lived with those processes, as the ranks of one launch do: half of a life and more
// while they lived. All, if nothing is known of these processes.
std::vector<ProcessExit> ExitsBeside(const std::vector<ProcessExit>& exits,
                                     const std::vector<std::int64_t>& process_ids);

// Why `first`, one of them, failed: it, or a later one, if it failed because that was gone.
const ProcessExit& CauseOf(const std::vector<ProcessExit>& exits, const ProcessExit& first);

// The ranks that a fault of their own ended by the same signal at the same place as `exit`, which is one of
// them, ascending. Empty: it was no such end.
std::vector<std::int64_t> EndedAlike(const std::vector<ProcessExit>& exits,
                                     const ProcessExit& exit);

// A rank that a fatal signal ended, or that had raised an exception, and whose end was seen together with
// that of `asked`, which was asked to end: such ends have no order. Null: there is none.
const ProcessExit* SignalledWith(const std::vector<ProcessExit>& exits, const ProcessExit& asked);

// The program that failed in a script: the last of those that `command`, which failed, had started and
// whose exit code it passed on. Null: none is known.
const ProcessExit* FailedProgram(const std::vector<ProcessExit>& exits, const ProcessExit& command);

// Of ranks that were started again, the first that failed after the last start, without a log of
// it. Null: none did.
const ProcessExit* FailedWithoutLog(const std::vector<ProcessExit>& exits);

// An end is seen after it came, an exception at once.
inline constexpr std::int64_t kSeenAfterUs = 200'000;

// The command that raised an exception before a signal ended `exit`, one of its ranks. Null: it did not.
const ProcessExit* CommandBefore(const std::vector<ProcessExit>& exits, const ProcessExit& exit);

// What ranks printed to a standard error that was read, in the order of the text; and what torchrun
// calls the root cause in its last report, or logs of it.
struct PrintedFailures {
  std::vector<FatalException> raised;
  struct Root {
    std::int64_t id = 0;                                      // of launcher_failure
    std::optional<std::int64_t> rank, local_rank, exit_code;  // rank: of a report
    std::string path;
    std::string launcher = {}, process = {};  // as of launcher_failure
    bool is_out_of_memory = false;
    std::string printed = {}, stopped_at = {}, fault_thread = {};  // as of ProcessExit
    bool is_fault =
        false;  // faulthandler printed it, and there is no report: `id` is of printed_abort
  };
  std::optional<Root> root;
  bool was_asked = false;  // the program was asked to end
};
Result<PrintedFailures> LoadPrintedFailures(Database& database, std::int64_t run_id);

// Sets what processes that SIGABRT ended printed before, and where a signal came if faulthandler printed
// that. Several print into one standard error: a text without a rank is known to be of one only if no other was
// aborted, or if all print the same.
Result<void> TellPrinted(Database& database, std::int64_t run_id,
                         const std::vector<ProcessExit*>& exits);

// Of the process with a log; null: nothing is known of its end.
const ProcessExit* ExitOf(const std::vector<ProcessExit>& exits, std::int64_t process_id);

// The kernel of generated code that checks its indices and raised this; empty: none did.
Result<std::string> KernelOf(Database& database, const FatalException& raised);

// "SIGTERM" or "exit code 1", if all of these processes ended so; else empty.
std::string HowAllEnded(const std::vector<ProcessExit>& exits,
                        const std::vector<std::int64_t>& process_ids);

// "SIGKILL"; "signal 99".
std::string SignalName(std::int64_t number);

// The exception that explains the most: that of the rank which torchrun saw first, else the first in
// the text that does not say that another process was gone.
const FatalException* FirstRaised(const PrintedFailures& printed);

// Whether a rank found another gone, and torchrun's report names one that raised nothing: that one.
bool IsOfReported(const FatalException& raised, const PrintedFailures& printed);

}  // namespace tlparse
