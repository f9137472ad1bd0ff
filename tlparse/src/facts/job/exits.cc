#include "facts/job/exits.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "artifacts/common/text/python_traceback.h"
#include "facts/text/message_lines.h"
#include "facts/text/shorten.h"
#include "queries/facts/job/exits.h"

namespace tlparse {

namespace {

// The first line, and the next one where it ends in a colon: "Error(s) in loading state_dict for Net:".
std::string BeginningOf(std::string_view message, bool is_quoting) {
  std::string first(message.substr(0, message.find('\n')));
  if (is_quoting || !first.ends_with(':') || first.size() == message.size()) return first;
  const std::string_view rest = message.substr(first.size() + 1);
  return fmt::format("{} {}", first, Trimmed(rest.substr(0, rest.find('\n'))));
}

}  // namespace

std::string RaisedFrom(std::string_view traceback, std::string_view message) {
  const TracebackSummary cause = CauseOfTraceback(traceback);
  const std::string_view first = cause.message.substr(0, cause.message.find('\n'));
  if (cause.type.empty() || message.find(first) != std::string_view::npos) return {};
  return fmt::format("{}: {}", cause.type, cause.message);
}

std::string FatalException::Text() const {
  constexpr std::size_t kMost = 160;
  const TracebackSummary quoted = QuotedTraceback(message);
  const std::string first = BeginningOf(message, !quoted.type.empty());
  std::string whole = first.empty() ? type : fmt::format("{}: {}", type, first);
  const std::string inner =
      fmt::format("{}: {}", quoted.type, quoted.message.substr(0, quoted.message.find('\n')));
  // A note may have the traceback of the exception itself.
  if (!quoted.type.empty() && inner != whole) {
    // "Caught KeyError in DataLoader worker process 0."
    const std::string caught = fmt::format("Caught {} in ", quoted.type);
    const bool is_same = first.starts_with(caught) && first.ends_with('.');
    const std::string_view where =
        is_same ? std::string_view(first).substr(caught.size()) : std::string_view();
    const std::string_view worker = Between(message, "On WorkerInfo(", "):\n");
    whole = is_same           ? fmt::format("{} (in {})", inner, where.substr(0, where.size() - 1))
            : !worker.empty() ? fmt::format("{} (on worker {} of torch.distributed.rpc)", inner,
                                            worker.substr(worker.find("name=") + 5))
                              : fmt::format("{}: {}", whole, inner);
  }
  const std::string_view process = Between(message, "-- Process ", " terminated with ");
  if (!process.empty() && process.size() < 8) whole += fmt::format(" (in process {})", process);
  if (!from.empty()) whole += ", from " + from.substr(0, from.find('\n'));
  const std::size_t end = whole.rfind(". ", kMost);
  const bool is_cut = whole.size() > kMost && end != std::string::npos && end > type.size();
  return Shorten(is_cut ? std::string_view(whole).substr(0, end) : whole, kMost);
}

std::string FatalException::Rest() const {
  constexpr std::size_t kMost = 600;
  constexpr std::string_view kCut = "…";
  std::string shown = Text();
  if (shown.ends_with(kCut)) shown.resize(shown.size() - kCut.size());
  const std::string whole = Shorten(fmt::format("{}: {}", type, message), std::string::npos);
  if (whole.size() <= shown.size() + 2 || !whole.starts_with(shown)) return "";
  std::string_view rest = std::string_view(whole).substr(shown.size());
  if (const std::size_t word = shown.rfind(' '); !rest.starts_with('.') && !rest.starts_with(' ') &&
                                                 word != shown.npos && shown.size() - word < 40)
    rest = std::string_view(whole).substr(word + 1);  // it was cut within a word
  if (rest.starts_with(". ")) rest.remove_prefix(2);
  // The end of a long message often says most: which parameters, which line.
  const std::size_t tail =
      rest.size() <= kMost ? rest.npos : rest.find(' ', rest.size() - kMost / 2);
  const std::size_t head = tail == rest.npos ? rest.npos : rest.rfind(' ', kMost / 2);
  if (head == rest.npos) return fmt::format(" The message goes on: {}", Shorten(rest, kMost));
  return fmt::format(" The message goes on: {} …{}", rest.substr(0, head), rest.substr(tail));
}

// As gloo, NCCL, the store of PyTorch and vLLM word it.
bool FatalException::PointsAbove() const {
  return message.find("root cause") != std::string::npos &&
         (message.find("tack trace") != std::string::npos ||
          message.find("See root cause above") != std::string::npos);
}

bool FatalException::ComesOfPeer() const {
  if (PointsAbove()) return true;
  for (const std::string_view part :
       {"closed by peer", "reset by peer", "Broken pipe", "failed to recv, got 0 bytes",
        "a remote process exit", "but received errors while waiting for send/recv from rank",
        "remote process has terminated", "connectFullMesh failed",
        "The client socket has "}) {  // …not found the store, which a rank hosts
    if (message.find(part) != std::string::npos || from.find(part) != std::string::npos)
      return true;
  }
  return false;
}

bool FatalException::IsTimeout() const {
  for (const std::string_view part : {"Timed out", "timed out", "timeout", "Timeout"}) {
    if (message.find(part) != std::string::npos || from.find(part) != std::string::npos)
      return true;
  }
  return false;
}

bool FatalException::HasWaited() const {
  // The end of a pipe has no message.
  return IsTimeout() || ComesOfPeer() || (type == "EOFError" && message.empty()) ||
         type == "Empty" || type == "BrokenProcessPool" || type == "TimeoutError" ||
         type == "BrokenPipeError" || type == "ConnectionResetError" ||
         type == "ConnectionRefusedError";
}

std::string FatalException::Place() const {
  return file.empty() ? file : fmt::format("{}:{}", file.substr(file.rfind('/') + 1), line);
}

// "CheckpointException ranks:dict_keys([1, 3])"
std::vector<std::int64_t> FatalException::FailedRanks() const {
  std::set<std::int64_t> ranks;
  const std::string first = message.substr(0, message.find('\n'));
  std::string_view list = Between(first, "ranks:dict_keys([", "])");
  while (!list.empty()) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), number);
    if (error == std::errc()) ranks.insert(number);
    list.remove_prefix(std::max<std::size_t>(1, static_cast<std::size_t>(end - list.data())));
  }
  return {ranks.begin(), ranks.end()};
}

Raisers WhoRaised(const FatalException& raised, const Exceptions& all,
                  const std::set<std::int64_t>& known) {
  std::set<std::int64_t> ranks;
  if (raised.rank) ranks.insert(*raised.rank);
  const std::string text = DigitsAsZero(raised.Text());
  for (const FatalException* const one : all) {
    const bool is_alike = one->type == raised.type && one->file == raised.file &&
                          one->line == raised.line && DigitsAsZero(one->Text()) == text;
    if (one->rank && raised.rank && is_alike && !raised.ComesOfPeer()) ranks.insert(*one->rank);
  }
  return {{ranks.begin(), ranks.end()}, ranks.size() > 1 && ranks == known};
}

std::vector<RaisedTogether> WhereTheyWaited(const Exceptions& raised) {
  std::map<std::string, RaisedTogether> places;
  for (const FatalException* const one : raised) {
    if (!one->rank || one->file.empty() || (!one->IsTimeout() && !one->ComesOfPeer())) return {};
    RaisedTogether& place = places[one->Place()];
    place.place = one->Place();
    place.ranks.push_back(*one->rank);
    if (place.first == nullptr) place.first = one;
  }
  std::vector<RaisedTogether> sorted;
  for (auto& [name, place] : places) {
    std::sort(place.ranks.begin(), place.ranks.end());
    sorted.push_back(std::move(place));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const RaisedTogether& a, const RaisedTogether& b) {
                     return a.ranks.size() > b.ranks.size();
                   });
  return sorted;
}

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

Result<void> TellPrinted(Database& database, std::int64_t run_id,
                         const std::vector<ProcessExit*>& exits) {
  std::map<std::int64_t, std::string> of_rank;
  std::set<std::string> texts;
  std::string first;
  std::int64_t aborted = 0;
  FOR_EACH_ROW(const PrintedAbortOfRun& row,
               KeptQuery<PrintedAbortOfRun>(database, {.run_id = run_id})) {
    aborted = row.aborted_count;
    if (row.rank) of_rank.emplace(*row.rank, row.text);
    if (first.empty() && !row.rank) first = row.text;
    if (!row.rank) texts.emplace(row.text);
  }
  for (ProcessExit* const one : exits) {
    ProcessExit& exit = *one;
    if (exit.signal != SIGABRT) continue;
    const auto own = exit.rank ? of_rank.find(*exit.rank) : of_rank.end();
    if (own != of_rank.end())
      exit.printed = own->second;
    else if (aborted == 1 || texts.size() == 1)
      exit.printed = first;
  }
  return {};
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

Result<PrintedFailures> LoadPrintedFailures(Database& database, std::int64_t run_id) {
  PrintedFailures failures;
  FOR_EACH_ROW(const PrintedException& row,
               KeptQuery<PrintedException>(database, {.run_id = run_id})) {
    // The program was asked to end by a signal or by Ctrl-C: that is no failure of it.
    if (!row.rank && (row.type == "SignalException" || row.type == "KeyboardInterrupt")) continue;
    std::string process(row.process_name);
    if (process.empty() && !row.rank) process = "The program";
    if (row.pid) process += fmt::format(" (pid {})", *row.pid);
    failures.raised.push_back({row.id, row.rank, std::string(row.type), std::string(row.message),
                               std::string(row.user_file), row.user_line, std::nullopt,
                               std::string(row.path), RaisedFrom(row.traceback, row.message),
                               std::move(process),
                               LinesOfTraceback(row.traceback, row.user_file, row.user_line)});
  }
  FOR_EACH_ROW(const ReportedFailure& row, KeptQuery<ReportedFailure>(database, {.run_id = run_id}))
    failures.root = {row.id, row.rank, row.local_rank, row.exit_code, std::string(row.path)};
  if (failures.root && failures.root->exit_code == -SIGABRT) {
    ProcessExit exit;
    exit.rank = failures.root->rank;
    exit.signal = SIGABRT;
    RETURN_IF_ERROR(TellPrinted(database, run_id, {&exit}));
    failures.root->printed = std::move(exit.printed);
  }
  return failures;
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

const FatalException* FirstRaised(const PrintedFailures& printed) {
  const FatalException* first = nullptr;
  for (const FatalException& one : printed.raised) {
    const bool is_root =
        printed.root && printed.root->rank && one.rank == printed.root->rank && !one.ComesOfPeer();
    const bool is_better = first == nullptr || (first->ComesOfPeer() && !one.ComesOfPeer());
    if (is_root) return &one;
    if (is_better) first = &one;
  }
  return first;
}

bool IsOfReported(const FatalException& raised, const PrintedFailures& printed) {
  const auto& root = printed.root;
  const auto is_of_root = [&](const FatalException& one) { return one.rank == root->rank; };
  return raised.ComesOfPeer() && root && root->rank && root->exit_code.value_or(0) > 0 &&
         std::none_of(printed.raised.begin(), printed.raised.end(), is_of_root);
}

}  // namespace tlparse
