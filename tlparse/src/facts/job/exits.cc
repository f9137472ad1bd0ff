#include "facts/job/exits.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "artifacts/common/text/python_traceback.h"
#include "queries/facts/job/exits.h"

namespace tlparse {

bool ProcessExit::RanBeside(const ProcessExit& other) const {
  return started_us.value_or(0) <= other.ended_us.value_or(INT64_MAX) &&
         other.started_us.value_or(0) <= ended_us.value_or(INT64_MAX);
}

bool ProcessExit::WasAsked() const {
  // One that raised an exception had failed before its launcher ended it. torchrun raises SignalException
  // when it is asked to end (torch/distributed/elastic/multiprocessing/api.py).
  if (raised) return raised->type == "KeyboardInterrupt" || raised->type == "SignalException";
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

Result<std::vector<ProcessExit>> LoadExits(Database& database, std::int64_t run_id) {
  std::vector<ProcessExit> exits;
  FOR_EACH_ROW(const ExitOfProcess& row, KeptQuery<ExitOfProcess>(database, {.run_id = run_id})) {
    exits.push_back({row.profile_id, row.ordinal, row.pid, row.rank, row.process_id,
                     std::string(row.host), std::string(row.command), row.started_us, row.ended_us,
                     row.exit_code, row.signal, std::string(row.stopped_at),
                     std::string(row.fault_thread), std::string(), std::nullopt});
    if (row.exception_id) exits.back().raised = ExceptionOfRow(row, row.rank);
  }
  std::vector<ProcessExit*> all;
  for (ProcessExit& one : exits) all.push_back(&one);
  RETURN_IF_ERROR(TellPrinted(database, run_id, all));
  return exits;
}

const ProcessExit& CauseOf(const std::vector<ProcessExit>& exits, const ProcessExit& first) {
  if (!first.raised || !first.raised->ComesOfPeer()) return first;
  bool is_later = false;
  for (const ProcessExit& one : exits) {
    const bool is_cause = is_later && one.HasFailed() && !one.WasAsked() &&
                          one.rank.has_value() == first.rank.has_value() &&
                          !(one.raised && one.raised->ComesOfPeer()) && one.host == first.host;
    if (is_cause && one.started_us.value_or(0) <= first.ended_us.value_or(INT64_MAX)) return one;
    is_later = is_later || &one == &first;
  }
  return first;
}

namespace {

bool IsFault(const ProcessExit& exit) {
  return exit.signal == SIGABRT || exit.signal == SIGSEGV || exit.signal == SIGBUS ||
         exit.signal == SIGILL || exit.signal == SIGFPE;
}

}  // namespace

std::vector<std::int64_t> EndedAlike(const std::vector<ProcessExit>& exits,
                                     const ProcessExit& exit) {
  std::set<std::int64_t> ranks;
  if (!exit.rank || exit.raised || !IsFault(exit) || exit.stopped_at.empty()) return {};
  for (const ProcessExit& one : exits) {
    const bool is_alike = one.rank && !one.raised && one.signal == exit.signal &&
                          one.stopped_at == exit.stopped_at && one.RanBeside(exit);
    if (is_alike) ranks.insert(*one.rank);
  }
  return {ranks.begin(), ranks.end()};
}

const ProcessExit* SignalledWith(const std::vector<ProcessExit>& exits, const ProcessExit& asked) {
  const auto found = std::find_if(exits.begin(), exits.end(), [&](const ProcessExit& one) {
    const bool raised_before = one.raised && !one.WasAsked() && !one.raised->ComesOfPeer() &&
                               one.raised->raised_us && asked.ended_us &&
                               *one.raised->raised_us <= *asked.ended_us;
    return one.rank && (IsFault(one) || raised_before) && one.host == asked.host && one.ended_us &&
           asked.ended_us && *one.ended_us - *asked.ended_us <= kSeenAfterUs &&
           *asked.ended_us - *one.ended_us <= kSeenAfterUs;
  });
  return found == exits.end() ? nullptr : &*found;
}

const ProcessExit* FailedProgram(const std::vector<ProcessExit>& exits,
                                 const ProcessExit& command) {
  if (command.raised && command.raised->type != "CalledProcessError") return nullptr;
  const ProcessExit* last = nullptr;
  for (const ProcessExit& one : exits) {
    const std::int64_t code = one.signal ? 128 + *one.signal : one.exit_code.value_or(0);
    const bool is_passed_on = command.raised || code == command.exit_code;
    const bool is_program = !one.rank && !one.IsCommand() && one.profile_id == command.profile_id;
    if (is_program && one.HasFailed() && !one.WasAsked() && is_passed_on && one.ended_us &&
        (last == nullptr || *one.ended_us > *last->ended_us))
      last = &one;
  }
  return last;
}

const ProcessExit* FailedWithoutLog(const std::vector<ProcessExit>& exits) {
  const auto is_again = [&](const ProcessExit& one, const ProcessExit& other) {
    return one.rank && one.rank == other.rank && one.host == other.host &&
           one.started_us > other.started_us;
  };
  std::optional<std::int64_t> before_us;  // the last start of those that were started again
  for (const ProcessExit& one : exits) {
    const bool was_again = std::any_of(
        exits.begin(), exits.end(), [&](const ProcessExit& other) { return is_again(other, one); });
    if (was_again) before_us = std::max(before_us, one.started_us);
  }
  if (!before_us) return nullptr;
  const ProcessExit* failed = nullptr;
  for (const ProcessExit& one : exits) {
    if (!one.rank || one.started_us <= before_us) continue;
    if (one.process_id) return nullptr;  // the logs show this launch
    if (failed == nullptr && one.HasFailed() && !one.WasAsked()) failed = &CauseOf(exits, one);
  }
  return failed;
}

const ProcessExit* CommandBefore(const std::vector<ProcessExit>& exits, const ProcessExit& exit) {
  if (!exit.rank || !exit.signal || exit.raised || !exit.ended_us) return nullptr;
  const auto found = std::find_if(exits.begin(), exits.end(), [&](const ProcessExit& one) {
    return one.IsCommand() && one.profile_id == exit.profile_id && one.raised && !one.WasAsked() &&
           one.raised->raised_us && *one.raised->raised_us + kSeenAfterUs < *exit.ended_us;
  });
  return found == exits.end() ? nullptr : &*found;
}

// The last line of code in the traceback is the call: "cpp_fused_embedding_0(arg0_1, buf0)".
Result<std::string> KernelOf(Database& database, const FatalException& raised) {
  constexpr std::string_view kCall = "\n    cpp_";
  if (!raised.message.starts_with("kernel, ")) return std::string();
  ASSIGN_OR_RETURN(const FirstRow<TracebackOf> row,
                   First(Query<TracebackOf>(database, {.id = raised.id})));
  const std::string text(row->traceback);
  const std::size_t at = text.rfind(kCall), end = text.find('(', at);
  if (at == std::string::npos || end == std::string::npos) return std::string();
  const std::size_t begin = at + kCall.size() - 4;
  return text.substr(begin, end - begin);
}

std::string SignalName(std::int64_t number) {
  const char* const name = sigabbrev_np(static_cast<int>(number));
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

const ProcessExit* ExitOf(const std::vector<ProcessExit>& exits, std::int64_t process_id) {
  const auto exit = std::find_if(exits.begin(), exits.end(), [process_id](const ProcessExit& one) {
    return one.process_id == process_id;
  });
  return exit == exits.end() ? nullptr : &*exit;
}

std::string HowAllEnded(const std::vector<ProcessExit>& exits,
                        const std::vector<std::int64_t>& process_ids) {
  std::set<std::string> how;
  for (const std::int64_t id : process_ids) {
    const ProcessExit* const exit = ExitOf(exits, id);
    how.insert(exit == nullptr   ? std::string()
               : exit->signal    ? SignalName(*exit->signal)
               : exit->exit_code ? fmt::format("exit code {}", *exit->exit_code)
                                 : std::string());
  }
  return how.size() == 1 ? *how.begin() : std::string();
}

}  // namespace tlparse
