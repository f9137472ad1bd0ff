// Ranks that a signal ended, or that ended with an exit code, by what `tlparse run` saw.
#include "facts/job/exits.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "findings/context.h"

namespace tlparse {
namespace {

// The first that failed; nothing: none, or it was asked to end.
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
  for (const ProcessExit& one : exits) {
    if (has_ranks && !one.rank) continue;
    const bool is_of_launch = one.ended_us && one.ended_us >= since_us.value_or(0) &&
                              (!until_us || one.ended_us < until_us);
    if (one.HasFailed() && is_of_launch) return one.WasAsked() ? nullptr : &one;
  }
  return nullptr;
}

bool IsAbout(const Finding& finding, const ProcessExit& exit) {
  return finding.ranks.empty() || !exit.rank ||
         std::find(finding.ranks.begin(), finding.ranks.end(), *exit.rank) != finding.ranks.end();
}

// An exit code says less than a record of the failure.
bool IsExplained(const FindingContext& context, const ProcessExit& exit) {
  return std::any_of(context.findings.begin(), context.findings.end(), [&](const Finding& one) {
    return one.severity == FindingSeverity::kError && IsAbout(one, exit);
  });
}

// "At 23:00:43.013 UTC, 1.50 s after the last record of its log, of 4/0 forward."
std::string WhenItEnded(const FindingContext& context, const ProcessExit& exit) {
  std::string text = "At " + ClockText(*exit.ended_us);
  for (const RankIndex rank : context.All()) {
    const ProcessStatus& status = context.StatusOf(rank);
    if (!exit.process_id || status.process_id != *exit.process_id || !status.last_record_us)
      continue;
    text +=
        fmt::format(", {} after the last record of its log{}",
                    SecondsText(std::max<std::int64_t>(0, *exit.ended_us - *status.last_record_us)),
                    status.compile.empty() ? "" : ", of " + status.Title());
  }
  return text + " (run.json).";
}

std::string HowItEnded(const ProcessExit& exit) {
  return exit.signal ? fmt::format("was ended by {}", SignalName(*exit.signal))
                     : fmt::format("ended with exit code {}", *exit.exit_code);
}

}  // namespace

Result<void> FindExits(FindingContext& context) {
  ASSIGN_OR_RETURN(const std::vector<ProcessExit> exits,
                   LoadExits(context.database, context.job.run_id()));
  const ProcessExit* const first = FirstFailed(context, exits);
  if (first == nullptr || (!first->signal && IsExplained(context, *first))) return {};
  Finding finding;
  finding.kind = FindingKind::kCrashed;
  finding.severity = FindingSeverity::kError;
  finding.title =
      fmt::format("{} {}", first->rank ? fmt::format("Rank {}", *first->rank) : "The command",
                  HowItEnded(*first));
  finding.cause = first->signal ? SignalName(*first->signal) : "exit code";
  finding.since_us = first->ended_us;
  if (first->rank) finding.ranks = {*first->rank};
  finding.rank_count = 1;
  finding.detail = WhenItEnded(context, *first);
  if (first->signal == SIGKILL)
    finding.suggestion =
        "look whether its memory ran out: the kernel's log (dmesg) names the processes that it "
        "killed";
  if (!first->signal) finding.suggestion = "read what it printed last";
  finding.query = fmt::format(
      "SELECT profile_id, rank, pid, exit_code, signal, ended_us FROM run_process WHERE profile_id "
      "= {} AND ordinal = {}",
      first->profile_id, first->ordinal);
  // Where its log ends follows from it.
  for (auto one = context.findings.begin(); one != context.findings.end();) {
    const bool follows = one->kind == FindingKind::kStoppedFirst && IsAbout(*one, *first) &&
                         one->ranks == finding.ranks;
    if (follows) finding.evidence.push_back(std::move(*one));
    one = follows ? context.findings.erase(one) : one + 1;
  }
  context.findings.push_back(std::move(finding));
  return {};
}

}  // namespace tlparse
