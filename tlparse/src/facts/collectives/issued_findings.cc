// What is wrong with the collectives that ranks issued.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "facts/collectives/issued_group.h"
#include "facts/collectives/running_note.h"
#include "facts/job/exits.h"

namespace tlparse {

std::string GroupFinder::Ranks(const Positions& positions) const {
  std::vector<std::size_t> indices;
  for (const std::size_t position : positions) indices.push_back(group_.ranks[position]);
  return RanksText(job_, indices);
}

void SetPlace(CollectiveFinding& finding, const IssuedGroup& group, const IssuedCollective& one) {
  finding.group = group.name;
  finding.sequence = one.sequence;
  finding.label = one.label;
  finding.function = one.function;
  finding.file = one.caller_file.empty() ? one.file : one.caller_file;
  finding.line = one.caller_file.empty() ? one.line : one.caller_line;
  finding.since_us = one.start_ns / 1000;
}

Positions GroupFinder::Holders(std::int64_t sequence) const {
  Positions holders;
  for (std::size_t i = 0; i < group_.ranks.size(); ++i) {
    if (!group_.At(i, sequence).empty()) holders.push_back(i);
  }
  return holders;
}

Result<void> GroupFinder::Run() {
  if (group_.ranks.empty()) return {};
  if (FindNeverIssued()) return {};
  if (group_.ranks.size() == 1) {
    if (!FindUnknownPlace()) FindStuck();
    return {};
  }
  // From where all rings reach: what came before is unknown on some rank.
  std::set<std::int64_t> sequences;
  for (const std::vector<IssuedCollective>& issued : group_.issued) {
    for (const IssuedCollective& one : issued) sequences.insert(one.sequence);
  }
  for (const std::int64_t sequence : sequences) {
    ASSIGN_OR_RETURN(const bool is_other, FindOther(sequence));
    if (is_other) return {};
    ASSIGN_OR_RETURN(const bool is_late, FindLate(sequence));
    if (is_late) return {};
  }
  if (FindMispaired()) return {};
  ASSIGN_OR_RETURN(const bool is_found, FindNotReached());
  if (!is_found && !FindUnknownPlace()) FindStuck();
  return {};
}

namespace {

// Whether every one of the ranks that wait ended with exit code 0: what it waited for came. Those that it
// waited for may have been ended from outside later. Who waits is not known: every rank.
bool HaveSucceeded(const std::vector<ProcessExit>& exits, const IssuedJob& job,
                   std::vector<std::size_t> waiting) {
  if (waiting.empty()) {
    waiting.resize(job.ranks.size());
    std::iota(waiting.begin(), waiting.end(), 0);
  }
  return std::all_of(waiting.begin(), waiting.end(), [&](std::size_t index) {
    const std::optional<std::int64_t>& rank = job.ranks[index].rank;
    const auto is_its = [&](const ProcessExit& one) { return rank && one.rank == rank; };
    return std::any_of(exits.begin(), exits.end(), is_its) &&
           std::all_of(exits.begin(), exits.end(),
                       [&](const ProcessExit& one) { return !is_its(one) || one.exit_code == 0; });
  });
}

// Whether one of the ranks that wait failed afterwards: nothing asked it to end.
bool HasFailed(const std::vector<ProcessExit>& exits, const IssuedJob& job,
               const std::vector<std::size_t>& waiting) {
  return std::any_of(waiting.begin(), waiting.end(), [&](std::size_t index) {
    const std::optional<std::int64_t>& rank = job.ranks[index].rank;
    return rank && std::any_of(exits.begin(), exits.end(), [&](const ProcessExit& one) {
             return one.rank == rank && one.HasFailed() && !one.WasAsked();
           });
  });
}

}  // namespace

void TakeOutMayRun(std::string& text) {
  const std::string whole = fmt::format(". {}", kMayBeRunning);
  if (const std::size_t at = text.find(whole); at != std::string::npos)
    text.erase(at, whole.size());
}

namespace {

// That ranks were together inside a call when the recorder was dumped is said once, and of a job
// without a problem alone.
void KeepFirstMoment(std::vector<CollectiveFinding>& findings) {
  const auto is_moment = [](const CollectiveFinding& one) {
    return one.kind == FindingKind::kStuck && one.severity == FindingSeverity::kNote &&
           !one.is_over;
  };
  const CollectiveFinding* first = nullptr;
  bool has_problem = false;
  for (const CollectiveFinding& one : findings) {
    has_problem |= one.severity != FindingSeverity::kNote;
    if (is_moment(one) && (first == nullptr || one.since_us < first->since_us)) first = &one;
  }
  const std::string group = first == nullptr || has_problem ? std::string() : first->group;
  std::erase_if(findings,
                [&](const CollectiveFinding& one) { return is_moment(one) && one.group != group; });
}

// A device that has not started a call since it is in an earlier one of another group: what is said of that
// one explains it.
void DropWhatFollows(std::vector<CollectiveFinding>& findings) {
  const bool has_first =
      std::any_of(findings.begin(), findings.end(), [](const CollectiveFinding& one) {
        return !one.is_behind_another && one.severity == FindingSeverity::kError;
      });
  if (has_first)
    std::erase_if(findings, [](const CollectiveFinding& one) { return one.is_behind_another; });
}

}  // namespace

Result<std::vector<CollectiveFinding>> FindIssuedProblems(Database& database,
                                                          const IssuedJob& job) {
  std::vector<CollectiveFinding> findings;
  const std::vector<OpenWait> waits = OpenWaits(job);
  RankSet waiting = InsideTogether(job);
  waiting.merge(WaitForUnknown(job));
  for (const OpenWait& wait : waits) waiting.insert(wait.waiting.begin(), wait.waiting.end());
  const std::vector<MessageWait> message_waits = MessageWaits(job);
  for (const MessageWait& wait : message_waits) waiting.insert(wait.rank);
  for (const IssuedGroup& group : job.groups)
    RETURN_IF_ERROR(GroupFinder(database, job, group, waiting, findings).Run());
  FindMessageWaits(job, message_waits, waits, findings);
  if (job.empty()) RETURN_IF_ERROR(FindCounted(database, job, findings));
  if (!FindCycle(job, waits, findings) && !FindOddProgram(job, findings))
    FindOrder(job, waiting, findings);
  DropWhatFollows(findings);
  ASSIGN_OR_RETURN(const std::vector<ProcessExit> exits, LoadExits(database, job.run_id));
  for (CollectiveFinding& finding : findings) {
    finding.title = Capital(std::move(finding.title));
    const bool is_wait =
        finding.kind == FindingKind::kCollectiveNotReached || finding.kind == FindingKind::kStuck;
    if (is_wait && finding.is_of_unknown_length && HasFailed(exits, job, finding.waiting)) {
      finding.severity =
          finding.kind == FindingKind::kStuck ? FindingSeverity::kWarning : FindingSeverity::kError;
      TakeOutMayRun(finding.detail);
    }
    if (!is_wait || !HaveSucceeded(exits, job, finding.waiting)) continue;
    finding.severity = FindingSeverity::kNote;
    finding.is_over = true;
    finding.detail += finding.detail.empty() ? "" : finding.detail.ends_with('.') ? " " : ". ";
    finding.detail += "All ranks that waited ended with exit code 0 afterwards: the wait was over.";
  }
  KeepFirstMoment(findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const CollectiveFinding& a, const CollectiveFinding& b) {
                     return std::pair(a.severity, a.since_us.value_or(0)) <
                            std::pair(b.severity, b.since_us.value_or(0));
                   });
  return findings;
}

}  // namespace tlparse
