// A thread, a task or a child that failed, while its process or parent went on: the cause of what
// waits for it.
#include "findings/hidden_failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "findings/exit_texts.h"
#include "findings/waiting_ranks.h"

namespace tlparse {
namespace {

Finding FindingOfHidden(const HiddenFailure& failure) {
  Finding finding;
  finding.kind = FindingKind::kCrashed;
  finding.rank_count = 1;
  if (failure.owner_rank) finding.ranks = {*failure.owner_rank};
  const std::optional<FatalException>& raised = failure.exit.raised;
  finding.title = fmt::format("{} {}", failure.Subject(),
                              raised ? "raised " + raised->Text() : HowItEnded(failure.exit));
  finding.cause = raised                ? raised->Text()
                  : failure.exit.signal ? SignalName(*failure.exit.signal)
                                        : "exit code";
  finding.since_us = failure.time_us;
  finding.detail = fmt::format("At {} (run.json).", ClockText(failure.time_us));
  if (raised) finding.detail += raised->Rest();
  if (failure.exit.signal) SayWhereTheyWere({}, finding, failure.exit, {});
  if (raised && !raised->file.empty()) finding.place = FindingPlace{raised->file, raised->line, {}};
  finding.query = raised ? QueryOf(*raised) : QueryOf(failure.exit);
  return finding;
}

}  // namespace

Result<bool> PutHiddenFirst(FindingContext& context, Finding& waiting, const ProcessExit* exit) {
  ASSIGN_OR_RETURN(const std::vector<HiddenFailure> failures,
                   LoadHiddenFailures(context.database, context.job.run_id()));
  const HiddenFailure* const first =
      FirstHidden(failures, exit, waiting.since_us.value_or(0) + kSeenAfterUs);
  if (first == nullptr || !IsOfLaunch(context, first->time_us)) return false;
  Finding finding = FindingOfHidden(*first);
  finding.severity = FindingSeverity::kError;
  finding.detail += fmt::format(
      " {}{} later: {}{}", first->thread ? "Its process went on; " : "",
      SecondsText(std::max<std::int64_t>(0, waiting.since_us.value_or(0) - first->time_us)),
      waiting.title, waiting.title.ends_with('.') ? "" : ".");
  finding.evidence.push_back(std::exchange(waiting, {}));
  waiting = std::move(finding);
  return true;
}

namespace {

bool HasLog(const std::vector<ProcessExit>& exits, const ProcessExit& child) {
  return std::any_of(exits.begin(), exits.end(), [&](const ProcessExit& one) {
    return one.process_id && one.profile_id == child.profile_id && one.ordinal == child.ordinal;
  });
}

// Whether the command did well without it.
bool DidWellWithout(const std::vector<ProcessExit>& exits, const ProcessExit& child) {
  return std::any_of(exits.begin(), exits.end(), [&](const ProcessExit& one) {
    return one.IsCommand() && one.profile_id == child.profile_id && one.exit_code == 0;
  });
}

// Whether the process ended by it, as by what a task raises where the task is awaited.
bool WasRaisedAgain(const std::vector<ProcessExit>& exits, const ProcessExit& failed) {
  return std::any_of(exits.begin(), exits.end(), [&](const ProcessExit& one) {
    return one.pid == failed.pid && one.raised && failed.raised &&
           one.raised->Text() == failed.raised->Text();
  });
}

// What an interactive shell showed, and went on.
Finding FindingOfShown(const ProcessExit& exit) {
  Finding finding;
  finding.kind = FindingKind::kCrashed;
  finding.rank_count = 1;
  if (exit.rank) finding.ranks = {*exit.rank};
  finding.title = fmt::format("{} went on after {}", Subject(exit), exit.raised->Text());
  finding.cause = exit.raised->Text();
  finding.since_us = exit.ended_us;
  finding.detail = fmt::format(
      "It is the last exception that it showed; it ended with exit code 0, as an interactive shell "
      "does (run.json).{}",
      exit.raised->Rest());
  if (!exit.raised->file.empty())
    finding.place = FindingPlace{exit.raised->file, exit.raised->line, {}};
  finding.query = QueryOf(*exit.raised);
  return finding;
}

// The user ended it: where it was then. Of ranks their launcher's end says nothing.
void AddInterrupted(FindingContext& context, const std::vector<ProcessExit>& exits) {
  const bool has_ranks = std::any_of(exits.begin(), exits.end(),
                                     [](const ProcessExit& one) { return one.rank.has_value(); });
  const bool has_error =
      std::any_of(context.findings.begin(), context.findings.end(),
                  [](const Finding& one) { return one.severity == FindingSeverity::kError; });
  if (has_ranks || has_error) return;
  for (const ProcessExit& exit : exits) {
    if (!exit.IsCommand() || !exit.raised || exit.raised->type != "KeyboardInterrupt" ||
        !IsOfLaunch(context, exit.ended_us))
      continue;
    Finding& finding = context.Add(FindingKind::kCrashed, FindingSeverity::kNote);
    finding.rank_count = 1;
    finding.title = fmt::format("The command was interrupted (KeyboardInterrupt){}",
                                exit.raised->file.empty() ? "" : " at " + exit.raised->Place());
    finding.cause = "KeyboardInterrupt";
    finding.since_us = exit.raised->raised_us;
    finding.detail = WhatCame(context, exit);
    if (!exit.raised->file.empty())
      finding.place = FindingPlace{exit.raised->file, exit.raised->line, {}};
    finding.query = QueryOf(*exit.raised);
  }
}

}  // namespace

// Those that no other finding has: the process of the thread or task went on, or the parent of a
// child that had compiled.
Result<void> FindHiddenFailures(FindingContext& context) {
  ASSIGN_OR_RETURN(const std::vector<ProcessExit> exits,
                   LoadExits(context.database, context.job.run_id()));
  ASSIGN_OR_RETURN(const std::vector<HiddenFailure> failures,
                   LoadHiddenFailures(context.database, context.job.run_id()));
  for (const ProcessExit& one : exits) {
    if (one.WentOn() && (one.IsCommand() || one.process_id) && IsOfLaunch(context, one.ended_us))
      context.findings.push_back(FindingOfShown(one));
  }
  AddInterrupted(context, exits);
  for (const HiddenFailure& one : failures) {
    const bool is_of_log = !one.thread && HasLog(exits, one.exit);
    const bool is_lost = one.thread ? !one.is_of_task || !WasRaisedAgain(exits, one.exit)
                                    : is_of_log && DidWellWithout(exits, one.exit);
    Finding finding = FindingOfHidden(one);
    const auto is_it = [&](const Finding& known) { return known.query == finding.query; };
    const bool is_known = std::any_of(context.findings.begin(), context.findings.end(), is_it);
    if (is_of_log) finding.severity = FindingSeverity::kWarning;
    if (is_lost && !is_known && IsOfLaunch(context, one.time_us))
      context.findings.push_back(std::move(finding));
  }
  return {};
}

}  // namespace tlparse
