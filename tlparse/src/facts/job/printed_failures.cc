// What processes printed of failures: exceptions, texts of C++, stacks of faulthandler, torchrun's report.
#include "queries/facts/job/printed_failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "facts/job/exits.h"

namespace tlparse {
namespace {

// "Fatal Python error: Segmentation fault" and its stacks.
struct PrintedFault {
  std::optional<std::int64_t> rank;
  std::int64_t signal = 0;
  std::string stopped_at, thread;  // as of ProcessExit
};

// Of faulthandler's texts: where the process of such an end was, if only one place may be meant.
void TellFault(const std::vector<PrintedFault>& faults, ProcessExit& exit) {
  if (!exit.stopped_at.empty() || !exit.fault_thread.empty() || !exit.signal) return;
  const PrintedFault* only = nullptr;
  for (const PrintedFault& one : faults) {
    if (one.signal != *exit.signal || (one.rank && exit.rank && one.rank != exit.rank)) continue;
    const bool is_own = one.rank && one.rank == exit.rank;
    if (only != nullptr && only->stopped_at != one.stopped_at && !is_own) return;
    only = &one;
    if (is_own) break;
  }
  if (only == nullptr) return;
  exit.stopped_at = only->stopped_at;
  exit.fault_thread = only->thread;
}

}  // namespace

Result<void> TellPrinted(Database& database, std::int64_t run_id,
                         const std::vector<ProcessExit*>& exits) {
  std::map<std::int64_t, std::string> of_rank;
  std::set<std::string> texts;
  std::vector<PrintedFault> faults;
  std::string first;
  std::int64_t aborted = 0;
  FOR_EACH_ROW(const PrintedAbortOfRun& row,
               KeptQuery<PrintedAbortOfRun>(database, {.run_id = run_id})) {
    aborted = row.aborted_count;
    if (row.signal) {
      faults.push_back(
          {row.rank, *row.signal, std::string(row.stopped_at), std::string(row.fault_thread)});
      continue;
    }
    if (row.rank) of_rank.emplace(*row.rank, row.text);
    if (first.empty() && !row.rank) first = row.text;
    if (!row.rank) texts.emplace(row.text);
  }
  for (ProcessExit* const one : exits) {
    ProcessExit& exit = *one;
    TellFault(faults, exit);
    if (exit.signal != SIGABRT) continue;
    const auto own = exit.rank ? of_rank.find(*exit.rank) : of_rank.end();
    if (own != of_rank.end())
      exit.printed = own->second;
    else if (aborted == 1 || texts.size() == 1)
      exit.printed = first;
  }
  return {};
}

namespace {

// Where nothing says more of the end than faulthandler: what others raised follows from it, or is not known.
Result<void> TakeFault(Database& database, std::int64_t run_id, PrintedFailures& failures) {
  const bool has_cause =
      std::any_of(failures.raised.begin(), failures.raised.end(),
                  [](const FatalException& one) { return !one.is_beside && !one.HasWaited(); });
  if (has_cause) return {};
  ASSIGN_OR_RETURN(const FirstRow<FirstPrintedFault> row,
                   First(Query<FirstPrintedFault>(database, {.run_id = run_id})));
  if (!row) return {};
  failures.root = {row->id, row->rank, {}, -row->signal, std::string(row->path)};
  failures.root->is_fault = true;
  return {};
}

}  // namespace

Result<PrintedFailures> LoadPrintedFailures(Database& database, std::int64_t run_id) {
  PrintedFailures failures;
  FOR_EACH_ROW(const PrintedException& row,
               KeptQuery<PrintedException>(database, {.run_id = run_id})) {
    // The program was asked to end by a signal or by Ctrl-C: that is no failure of it.
    const bool is_asked =
        !row.rank && (row.type == "SignalException" || row.type == "KeyboardInterrupt");
    failures.was_asked |= is_asked;
    if (is_asked) continue;
    std::string process(row.process_name);
    if (row.is_child) process = "A child process";
    if (row.thread) process = fmt::format("Thread {}", *row.thread);
    if (process.empty() && !row.rank) process = "The program";
    if (row.pid) process += fmt::format(" (pid {})", *row.pid);
    failures.raised.push_back({row.id, row.rank, std::string(row.type), std::string(row.message),
                               std::string(row.user_file), row.user_line, std::nullopt,
                               std::string(row.path), RaisedFrom(row.traceback, row.message),
                               std::move(process),
                               LinesOfTraceback(row.traceback, row.user_file, row.user_line),
                               row.thread || row.is_child});
  }
  FOR_EACH_ROW(const ReportedFailure& row,
               KeptQuery<ReportedFailure>(database, {.run_id = run_id})) {
    // torchrun may start a job several times: the last failure. Slurm says of each task that it has ended: the first, or
    // why it was.
    const bool counts = !failures.root || row.launcher == "torchrun" ||
                        (row.is_out_of_memory && (!failures.root->is_out_of_memory ||
                                                  failures.root->launcher == "slurmstepd"));
    if (!counts) continue;
    failures.root = {row.id, row.rank, row.local_rank, row.exit_code, std::string(row.path)};
    failures.root->launcher = row.launcher;
    failures.root->process = row.process;
    failures.root->is_out_of_memory = row.is_out_of_memory != 0;
  }
  if (!failures.root) RETURN_IF_ERROR(TakeFault(database, run_id, failures));
  if (failures.root && failures.root->exit_code.value_or(0) < 0) {
    ProcessExit exit;
    exit.rank = failures.root->rank;
    exit.signal = -*failures.root->exit_code;
    RETURN_IF_ERROR(TellPrinted(database, run_id, {&exit}));
    failures.root->printed = std::move(exit.printed);
    failures.root->stopped_at = std::move(exit.stopped_at);
    failures.root->fault_thread = std::move(exit.fault_thread);
  }
  return failures;
}

const FatalException* FirstRaised(const PrintedFailures& printed) {
  const FatalException* first = nullptr;
  const bool is_waited =
      std::all_of(printed.raised.begin(), printed.raised.end(),
                  [](const FatalException& one) { return one.is_beside || one.HasWaited(); });
  for (const FatalException& one : printed.raised) {
    const bool is_root =
        printed.root && printed.root->rank && one.rank == printed.root->rank && !one.ComesOfPeer();
    const bool is_better = first == nullptr || (first->ComesOfPeer() && !one.ComesOfPeer());
    if (one.is_beside) {
      if (is_waited && !one.HasWaited()) return &one;
      continue;
    }
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
