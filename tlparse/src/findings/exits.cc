// Ranks that an exception, a signal or an exit code ended: by `tlparse run`, else by what was printed.
#include "facts/job/exits.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <set>
#include <utility>

#include "facts/job/compared_ranks.h"
#include "findings/compared_ranks.h"
#include "findings/compiled_lines.h"
#include "findings/consequences.h"
#include "findings/context.h"
#include "findings/device_assertions.h"
#include "findings/exit_texts.h"
#include "findings/hidden_failures.h"
#include "findings/nccl_warnings.h"
#include "findings/waiting_ranks.h"

namespace tlparse {
namespace {

// The first rank that failed, else the command; nothing: none, or it was asked to end.
const ProcessExit* FirstFailed(const FindingContext& context,
                               const std::vector<ProcessExit>& exits) {
  // A process may end before any other writes a record. The next launch starts after all of this
  // one have ended.
  std::optional<std::int64_t> since_us, until_us;
  for (const Launch& launch : context.launches) {
    if (launch.ordinal == context.job.launch() && launch.ordinal > 1) since_us = launch.start_us;
    if (launch.ordinal == context.job.launch() + 1) until_us = launch.start_us;
  }
  const bool has_ranks = std::any_of(exits.begin(), exits.end(),
                                     [](const ProcessExit& one) { return one.rank.has_value(); });
  const ProcessExit* command_failed = nullptr;
  for (const ProcessExit& one : exits) {
    const std::optional<std::int64_t> end_us =
        one.ended_us || !one.raised ? one.ended_us : one.raised->raised_us;
    const bool is_of_launch =
        end_us && *end_us >= since_us.value_or(0) && (!until_us || *end_us < *until_us);
    if (!one.HasFailed() || !is_of_launch) continue;
    if (one.IsCommand() && !one.WasAsked() && command_failed == nullptr) command_failed = &one;
    if (has_ranks ? !one.rank : !one.IsCommand()) continue;
    if (const ProcessExit* const command = CommandBefore(exits, one)) return command;
    const ProcessExit* const program = has_ranks ? nullptr : FailedProgram(exits, one);
    if (program != nullptr) return program;
    return one.WasAsked() ? SignalledWith(exits, one) : &CauseOf(exits, one);
  }
  return command_failed;
}

bool IsAbout(const Finding& finding, const std::optional<std::int64_t>& rank) {
  return finding.ranks.empty() || !rank ||
         std::find(finding.ranks.begin(), finding.ranks.end(), *rank) != finding.ranks.end();
}

// An exit code without the place where the program left says less than any record of the failure; the
// exception of a compile that failed is that of its record. Where the logs of several end is no failure of
// one. `is_known`: an exception, or such a place.
bool IsExplained(const FindingContext& context, const std::optional<std::int64_t>& rank,
                 bool is_known) {
  return std::any_of(context.findings.begin(), context.findings.end(), [&](const Finding& one) {
    const std::size_t count = one.ranks.empty() ? one.rank_count : one.ranks.size();
    const bool is_end_of_several = one.kind == FindingKind::kStoppedFirst && rank && count > 1;
    return one.severity == FindingSeverity::kError && IsAbout(one, rank) && !is_end_of_several &&
           (!is_known || one.kind == FindingKind::kCompileFailed);
  });
}

bool IsOfRaised(const Exceptions& raised, std::int64_t rank) {
  return std::any_of(raised.begin(), raised.end(),
                     [&](const FatalException* one) { return one->rank == rank; });
}

// The end of ranks that raised nothing, while others found a process gone; null: none is known.
Finding* EndOfGone(FindingContext& context, const Exceptions& raised) {
  const auto is_of_gone = [&](const Finding& one) {
    return one.kind == FindingKind::kStoppedFirst && !one.ranks.empty() &&
           std::none_of(one.ranks.begin(), one.ranks.end(),
                        [&](std::int64_t rank) { return IsOfRaised(raised, rank); });
  };
  const auto found = std::find_if(context.findings.begin(), context.findings.end(), is_of_gone);
  return found == context.findings.end() ? nullptr : &*found;
}

// Ranks with a log, and `ranks`.
std::set<std::int64_t> KnownRanks(const FindingContext& context, std::set<std::int64_t> ranks) {
  for (const JobParticipant& one : context.job.participants()) {
    if (one.rank) ranks.insert(*one.rank);
  }
  return ranks;
}

// The only rank with a log that raised nothing.
std::optional<std::int64_t> OnlyOneWithout(const FindingContext& context,
                                           const Exceptions& raised) {
  std::set<std::int64_t> ranks = KnownRanks(context, {});
  std::erase_if(ranks, [&](std::int64_t rank) { return IsOfRaised(raised, rank); });
  return ranks.size() == 1 ? std::optional(*ranks.begin()) : std::nullopt;
}

// Where nothing is known of an end but an exception.
void SetException(Finding& finding, const FatalException& raised, const Raisers& raisers) {
  std::string who = raised.rank || raised.raiser.empty() ? Subject(raised.rank) : raised.raiser;
  if (raisers.ranks.size() > 1) {
    who = RanksFirst(raisers.ranks);
  }
  if (raisers.are_everyone) who = fmt::format("Each of the {} ranks", raisers.ranks.size());
  finding.ranks = raisers.are_everyone ? std::vector<std::int64_t>() : raisers.ranks;
  finding.rank_count = raisers.ranks.size();
  finding.title = fmt::format("{} raised {}", who, raised.Text());
  finding.cause = raised.Text();
  finding.is_of_mismatch = SaysMismatch(raised.message);
  if (!raised.file.empty()) finding.place = FindingPlace{raised.file, raised.line, {}};
  if (raised.PointsAbove())
    finding.suggestion =
        "read the traceback that was printed before it, or give that text to tlparse as an input";
  else if (raised.ComesOfPeer())
    finding.suggestion =
        "look for the process that was gone: its end came before, and is not known";
  NameFailedRanks(finding, raised, who);
}

// A finding of such an end, with what follows from it. `is_root`: it follows from no other end.
void Add(FindingContext& context, Finding finding, const std::vector<ProcessExit>& exits,
         bool is_root = false) {
  if (finding.kind != FindingKind::kCollectiveDivergence) finding.kind = FindingKind::kCrashed;
  finding.severity = FindingSeverity::kError;
  finding.rank_count = std::max({std::size_t{1}, finding.rank_count, finding.ranks.size()});
  TakeConsequences(context.findings, finding, exits, is_root);
  context.findings.push_back(std::move(finding));
}

// A finding of an exception which says that another process was gone. It follows from the end of that
// one, where the logs show it.
void AddOfPeer(FindingContext& context, Finding finding, const Exceptions& raised,
               const std::vector<ProcessExit>& exits) {
  Finding* const end = EndOfGone(context, raised);
  if (end == nullptr) {
    const std::optional<std::int64_t> gone = OnlyOneWithout(context, raised);
    if (gone && !LivedOn(exits, *gone) && !raised.front()->PointsAbove())
      finding.suggestion = fmt::format(
          "look at why rank {} was gone: of the ranks with a log it alone raised nothing", *gone);
    return Add(context, std::move(finding), exits);
  }
  finding.kind = FindingKind::kCrashed;
  finding.severity = FindingSeverity::kError;
  finding.rank_count = finding.ranks.size();
  finding.suggestion.clear();
  end->severity = FindingSeverity::kError;
  const std::string who = RanksText(end->ranks);
  if (const std::string& path = raised.front()->path; !path.empty())
    end->detail +=
        fmt::format("{}No traceback of {} is in {}.",
                    end->detail.empty() || end->detail.ends_with(' ') ? "" : " ", who, path);
  if (end->suggestion.empty())
    end->suggestion = fmt::format("look at what {} printed last, and how {} ended", who,
                                  end->ranks.size() == 1 ? "its process" : "their processes");
  end->evidence.insert(end->evidence.begin(), std::move(finding));
}

Result<void> AddExit(FindingContext& context, const std::vector<ProcessExit>& exits,
                     const ProcessExit& exit) {
  Finding finding;
  finding.title = fmt::format("{} {}", Subject(exit), HowItEnded(exit));
  finding.cause = exit.signal ? SignalName(*exit.signal) : "exit code";
  if (exit.signal == SIGKILL) finding.suggestion = kLookForMemory;
  if (!exit.signal) finding.suggestion = "read what it printed last";
  finding.since_us = exit.raised && exit.raised->raised_us ? exit.raised->raised_us : exit.ended_us;
  finding.query = QueryOf(exit);
  Exceptions raised;
  std::set<std::int64_t> ranks;
  for (const ProcessExit& one : exits) {
    if (one.rank) ranks.insert(*one.rank);
    if (one.raised && one.rank && one.RanBeside(exit)) raised.push_back(&*one.raised);
  }
  if (exit.rank) finding.ranks = {*exit.rank};
  finding.detail = WhatCame(context, exit) + WhoLivedOn(exits, exit);
  bool is_compared = false;
  if (const auto alike = EndedAlike(exits, exit); alike.size() > 1)
    SetAlike(finding, exit, alike, KnownRanks(context, ranks));
  if (exit.raised) {
    finding.suggestion.clear();
    const Raisers raisers = WhoRaised(*exit.raised, raised, KnownRanks(context, ranks));
    SetException(finding, *exit.raised, raisers);
    if (!exit.rank) finding.title = fmt::format("{} raised {}", Subject(exit), exit.raised->Text());
    finding.query = QueryOf(*exit.raised);
    if (raisers.ranks.size() > 1 && exit.rank) {
      finding.detail[0] = 'a';  // "At"
      finding.detail = fmt::format("Rank {} first, {}", *exit.rank, finding.detail);
    }
    is_compared = SetCompared(finding, raised, exits);
    if (!is_compared && !exit.raised->lines.caller.empty())
      finding.detail += fmt::format(" Above it in the traceback: {}.", exit.raised->lines.caller);
    if (!is_compared) finding.detail += exit.raised->Rest();
    RETURN_IF_ERROR(SayCompiledLine(context, *exit.raised, exit.process_id, finding));
    RETURN_IF_ERROR(SayDeviceAssertion(context, *exit.raised, finding));
  }
  if (exit.raised && exit.raised->HasWaited() && !is_compared) {
    ASSIGN_OR_RETURN(const bool is_told, PutHiddenFirst(context, finding, &exit));
    if (is_told) {
      Add(context, std::move(finding), exits, true);
      return {};
    }
  }
  const bool is_apart =
      is_compared || (exit.raised && (SetApart(finding, raised, !HasRankElsewhere(exits, exit)) ||
                                      SetLate(finding, raised)));
  if (!is_apart) SayWhereTheyWere(context.findings, finding, exit, exits);
  if (!is_apart && exit.raised) SetNotJoined(finding, raised);
  RETURN_IF_ERROR(SayOtherThreads(context, finding));
  const bool has_waited = !is_apart && exit.raised && exit.rank &&
                          (exit.raised->ComesOfPeer() || exit.raised->IsTimeout());
  std::optional<Finding> done = has_waited ? EndOfDone(context, exits, exit) : std::nullopt;
  if (!done && !is_apart && exit.raised && exit.raised->ComesOfPeer()) {
    AddOfPeer(context, std::move(finding), raised, exits);
    return {};
  }
  if (done) {
    finding.kind = FindingKind::kCrashed;
    finding.severity = FindingSeverity::kError;
    finding.suggestion.clear();
    done->evidence.push_back(std::move(finding));
    Add(context, *std::move(done), exits, true);
    return {};
  }
  Add(context, std::move(finding), exits, exit.raised && !exit.raised->ComesOfPeer());
  return {};
}

// The end of a job that was started again: what the logs show of the start before is its evidence.
Result<void> AddLaterExit(FindingContext& context, const std::vector<ProcessExit>& exits,
                          const ProcessExit& exit) {
  std::vector<Finding> before = std::exchange(context.findings, {});
  RETURN_IF_ERROR(AddExit(context, exits, exit));
  Finding last = std::move(context.findings.back());
  context.findings.pop_back();
  // Whom it could not reach says nothing; what had ended the start before does.
  const auto cause = std::find_if(before.begin(), before.end(), [](const Finding& one) {
    return one.kind == FindingKind::kCrashed && one.severity == FindingSeverity::kError;
  });
  if (cause != before.end() && exit.raised && exit.raised->ComesOfPeer()) {
    cause->detail += " The job was started again, and failed then, without a log since.";
    cause->evidence.push_back(std::move(last));
    for (Finding& one : context.findings) before.push_back(std::move(one));
    context.findings = std::move(before);
    return {};
  }
  last.detail.insert(0, "The job had been started again, without a log since. ");
  for (Finding& one : before) {
    const bool is_end = one.kind == FindingKind::kCrashed || one.kind == FindingKind::kStoppedFirst;
    (is_end ? last.evidence : context.findings).push_back(std::move(one));
  }
  context.findings.push_back(std::move(last));
  return {};
}

// The failure that torchrun reports or logs. `follower`: an exception that followed from it; null: none.
void AddReported(FindingContext& context, const PrintedFailures& printed,
                 const FatalException* follower) {
  const std::int64_t code = printed.root ? printed.root->exit_code.value_or(0) : 0;
  if (code == 0) return;
  Finding finding;
  const std::optional<std::int64_t> rank = printed.root->rank;
  if (code > 0 && IsExplained(context, rank, false)) return;
  ProcessExit exit;
  (code < 0 ? exit.signal : exit.exit_code) = code < 0 ? -code : code;
  exit.rank = rank;
  SayReported(finding, *printed.root, exit);
  exit.printed = printed.root->printed;
  exit.stopped_at = printed.root->stopped_at;
  exit.fault_thread = printed.root->fault_thread;
  if (exit.stopped_at.empty()) {
    SayPrinted(finding, exit, true);
  } else {
    finding.suggestion.clear();
    SayWhereTheyWere({}, finding, exit, {});
  }
  finding.query =
      fmt::format("SELECT id, rank FROM {} WHERE id = {}",
                  printed.root->is_fault ? "printed_abort" : "launcher_failure", printed.root->id);
  if (rank) finding.ranks = {*rank};
  if (follower != nullptr) {
    Finding follows;
    follows.kind = FindingKind::kCrashed;
    follows.severity = FindingSeverity::kError;
    SetException(follows, *follower, Raisers{{follower->rank.value_or(0)}, false});
    follows.query = QueryOf(*follower);
    finding.evidence.push_back(std::move(follows));
  }
  Add(context, std::move(finding), {});
  if (code > 0) MoveBehindDivergence(context.findings);
}

bool AreAllBeside(const Exceptions& raised) {
  return std::all_of(raised.begin(), raised.end(),
                     [](const FatalException* one) { return one->is_beside; });
}

// Of several launches the text does not say which of them it is of.
Result<void> AddPrinted(FindingContext& context, const PrintedFailures& printed) {
  if (context.launches.size() > 1) return {};
  const FatalException* const raised = FirstRaised(printed);
  const std::int64_t code = printed.root ? printed.root->exit_code.value_or(0) : 0;
  const bool was_killed = code < 0 && code != -SIGTERM && code != -SIGINT && code != -SIGHUP;
  Finding finding;
  const bool is_of_reported = raised != nullptr && IsOfReported(*raised, printed);
  if (raised != nullptr && !was_killed && !is_of_reported) {
    if (IsExplained(context, raised->rank, true)) return {};
    Exceptions all;
    for (const FatalException& one : printed.raised) all.push_back(&one);
    const Raisers raisers = WhoRaised(*raised, all, KnownRanks(context, {}));
    SetException(finding, *raised, raisers);
    const std::size_t count = printed.raised.size();
    if (count <= std::max<std::size_t>(1, raisers.ranks.size()))
      finding.detail = fmt::format("By {} in {}.",
                                   count == 1 ? "its traceback" : "their tracebacks", raised->path);
    else
      finding.detail =
          fmt::format("Of the {} tracebacks in {} {}.", count, raised->path,
                      raised == &printed.raised.front() ? "it is the first"
                                                        : "the first that is no consequence");
    if (printed.root && printed.root->rank && printed.root->rank == raised->rank)
      finding.detail += " The report of torchrun names the rank as well.";
    const bool is_compared = SetCompared(finding, all, {});
    if (!is_compared) finding.detail += raised->Rest();
    RETURN_IF_ERROR(SayCompiledLine(context, *raised, std::nullopt, finding));
    RETURN_IF_ERROR(SayDeviceAssertion(context, *raised, finding));
    RETURN_IF_ERROR(SayNcclWarning(context, *raised, finding));
    finding.query = QueryOf(*raised);
    const bool is_apart = is_compared || SetApart(finding, all, true);
    if (!is_apart && raised->ComesOfPeer()) {
      AddOfPeer(context, std::move(finding), all, {});
      return {};
    }
    if (!is_apart) SetNotJoined(finding, all);
    Add(context, std::move(finding), {}, raised->rank && !raised->ComesOfPeer());
    if (raised->is_beside && !printed.root && AreAllBeside(all)) {
      context.findings.back().severity =
          printed.was_asked ? FindingSeverity::kWarning : FindingSeverity::kNote;
      context.findings.back().detail += " What became of its program is not in the text.";
    }
    return {};
  }
  AddReported(context, printed, is_of_reported ? raised : nullptr);
  return {};
}

// What another process of vLLM had logged before the command said that one had failed.
Result<bool> AddPrintedBefore(FindingContext& context, const ProcessExit& exit) {
  if (exit.rank || !exit.raised || !exit.raised->PointsAbove()) return false;
  ASSIGN_OR_RETURN(const PrintedFailures printed,
                   LoadPrintedFailures(context.database, context.job.run_id()));
  const FatalException* const raised = FirstRaised(printed);
  const std::size_t before = context.findings.size();
  if (raised != nullptr && !raised->PointsAbove()) RETURN_IF_ERROR(AddPrinted(context, printed));
  if (context.findings.size() <= before) return false;
  context.findings.back().detail +=
      fmt::format(" The command then raised {} (run.json).", exit.raised->type);
  return true;
}

}  // namespace

Result<void> FindExits(FindingContext& context) {
  ASSIGN_OR_RETURN(const std::vector<ProcessExit> exits,
                   LoadExits(context.database, context.job.run_id()));
  if (exits.empty()) {
    ASSIGN_OR_RETURN(const PrintedFailures printed,
                     LoadPrintedFailures(context.database, context.job.run_id()));
    return AddPrinted(context, printed);
  }
  const ProcessExit* const first = FirstFailed(context, exits);
  const bool is_said =
      first == nullptr ||
      (!first->signal &&
       IsExplained(context, first->rank, first->raised.has_value() || !first->stopped_at.empty()));
  if (!is_said && WasOfDone(exits, *first)) {
    AddOfDone(context, exits, *first);
    return {};
  }
  if (!is_said) {
    ASSIGN_OR_RETURN(const bool is_printed, AddPrintedBefore(context, *first));
    if (is_printed) return {};
    RETURN_IF_ERROR(AddExit(context, exits, *first));
    if (FollowsFromOthers(*first) || context.findings.back().is_of_mismatch)
      MoveBehindDivergence(context.findings);
  }
  const bool is_last = !context.options.launch &&
                       context.job.launch() >= static_cast<std::int64_t>(context.launches.size());
  const ProcessExit* const last = is_last ? FailedWithoutLog(exits) : nullptr;
  return last == nullptr || last == first ? Result<void>() : AddLaterExit(context, exits, *last);
}

}  // namespace tlparse
