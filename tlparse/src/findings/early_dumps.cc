#include "findings/early_dumps.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "facts/collectives/issued_group.h"
#include "facts/collectives/issued_lines.h"

namespace tlparse {
namespace {

// When a rank issued its last call, in any group.
std::int64_t LastStart(const IssuedJob& job, std::size_t rank) {
  std::int64_t last_ns = INT64_MIN;
  for (const IssuedGroup& group : job.groups) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      if (group.ranks[i] == rank) last_ns = std::max(last_ns, group.issued[i].back().start_ns);
    }
  }
  return last_ns;
}

// When a rank issued a call of the group that it has.
std::int64_t StartOf(const IssuedGroup& group, std::size_t rank, std::int64_t sequence) {
  const auto at = std::find(group.ranks.begin(), group.ranks.end(), rank) - group.ranks.begin();
  return group.At(static_cast<std::size_t>(at), sequence).front()->start_ns;
}

// One rank, the target, receives from all others. It waits for them; they may return before it has
// received.
bool IsSentToOne(std::string_view plain_op) { return plain_op == "gather" || plain_op == "reduce"; }

// Whether ranks may wait in it for a single one: any of them, its source or its target.
bool MayWaitForOne(std::string_view plain_op) {
  return NeedsAllRanks(plain_op) || IsSentToOne(plain_op) || plain_op.starts_with("broadcast") ||
         plain_op.starts_with("scatter");
}

// Whether a rank may have issued all that follows a call of the group without the rank that did not come to
// it: what needs all ranks it could only have issued as its last call.
bool MayHaveEndedIn(const IssuedJob& job, const IssuedGroup& group, std::size_t position,
                    const IssuedCollective& call) {
  const std::vector<IssuedCollective>& own = group.issued[position];
  const std::int64_t last_ns = LastStart(job, group.ranks[position]);
  return own.back().start_ns >= last_ns &&
         std::none_of(own.begin(), own.end() - 1, [&](const IssuedCollective& one) {
           return one.sequence >= call.sequence && NeedsAllRanks(one.plain_op);
         });
}

// The call that all ranks of the group but one have issued, each as the last one that it can have ended; of
// a gather or reduce it need be the last one of some rank only. nullptr: there is none.
const IssuedCollective* LastOfOthers(const IssuedJob& job, const IssuedGroup& group,
                                     const IssuedLine& line, std::vector<std::size_t>& holders) {
  const IssuedCollective* first = nullptr;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    if (group.ranks[i] == line.missing.front()) continue;
    const std::vector<const IssuedCollective*> own = group.At(i, line.sequence);
    if (own.empty()) return nullptr;
    const bool is_sent_to_one = IsSentToOne(own.front()->plain_op);
    const bool is_last = is_sent_to_one ? LastStart(job, group.ranks[i]) <= own.front()->start_ns
                                        : MayHaveEndedIn(job, group, i, *own.front());
    if (!is_last && !is_sent_to_one) return nullptr;
    if (!is_last) continue;
    if (first == nullptr || own.front()->start_ns < first->start_ns) first = own.front();
    holders.push_back(group.ranks[i]);
  }
  return first;
}

// Whether the rank has not issued an earlier call of the group either.
bool LacksEarlier(const IssuedGroup& group, std::size_t rank, std::int64_t sequence) {
  const auto at = std::find(group.ranks.begin(), group.ranks.end(), rank) - group.ranks.begin();
  return at != static_cast<std::ptrdiff_t>(group.ranks.size()) &&
         group.issued[static_cast<std::size_t>(at)].back().sequence + 1 < sequence;
}

bool IsOfMissingDumps(const Finding& one) {
  return one.kind == FindingKind::kMissingRank && one.cause == kNoRecorderDump;
}

// Whether the rank was the first to end, even if ranks of unknown calls are taken into account. If
// one of these ended first, the others fail while they wait for it, maybe before they have
// issued all calls of one line; the next call of another line comes after the wait, unless it alone
// waits in its last call, as the target of a gather, or in an all_to_all, which ends on each rank when the
// others' parts for it have come.
bool IsEarlierThanUnknown(const IssuedJob& job, const IssuedGroup& group, std::size_t rank,
                          const IssuedCollective& call) {
  if (group.unknown.empty()) return true;
  const bool are_without_dump =
      std::none_of(group.unknown.begin(), group.unknown.end(),
                   [&](std::size_t one) { return job.ranks[one].has_file; });
  const auto at = std::find(group.ranks.begin(), group.ranks.end(), rank);
  if (!are_without_dump || at == group.ranks.end() || call.file.empty()) return false;
  const IssuedCollective& last =
      group.issued[static_cast<std::size_t>(at - group.ranks.begin())].back();
  return !last.file.empty() && last.Place() != call.Place() && NeedsAllRanks(last.plain_op) &&
         !last.plain_op.starts_with("alltoall");
}

// Whether its device had not ended an earlier call of the group: the dump shows what it was in.
bool IsInside(const IssuedGroup& group, std::size_t rank) {
  const auto at = std::find(group.ranks.begin(), group.ranks.end(), rank);
  if (at == group.ranks.end()) return false;
  const IssuedCollective* const current =
      CurrentOf(group.issued[static_cast<std::size_t>(at - group.ranks.begin())]);
  return current != nullptr && current->IsOnDevice();
}

}  // namespace

void FindEarlyDumps(FindingContext& context) {
  const bool is_explained =
      std::any_of(context.findings.begin(), context.findings.end(), [](const Finding& one) {
        return one.kind == FindingKind::kCollectiveNotReached ||
               (one.severity != FindingSeverity::kNote && !IsOfMissingDumps(one));
      });
  if (is_explained || context.live != nullptr) return;
  const IssuedJob& job = context.issued;
  for (const IssuedGroup& group : job.groups) {
    for (const IssuedLine& line : IssuedLines(job, group)) {
      if (line.missing.size() != 1 || !MayWaitForOne(line.usual->plain_op)) continue;
      const IssuingRank& rank = job.ranks[line.missing.front()];
      std::vector<std::size_t> holders;
      const IssuedCollective* const call = LastOfOthers(job, group, line, holders);
      if (!rank.rank || call == nullptr || !call->IsRecorded() ||
          LastStart(job, line.missing.front()) >= call->start_ns ||
          IsInside(group, line.missing.front()) ||
          !LastElsewhere(job, group, line.missing.front()).empty() ||
          !IsEarlierThanUnknown(job, group, line.missing.front(), *call))
        continue;
      const bool are_last = std::all_of(holders.begin(), holders.end(), [&](std::size_t holder) {
        return LastStart(job, holder) <= StartOf(group, holder, line.sequence);
      });
      // Calls that do not wait for each other, as of buckets, may all be the last ones.
      if (!are_last && LacksEarlier(group, line.missing.front(), line.sequence)) continue;
      Finding finding;
      finding.kind = FindingKind::kStoppedFirst;
      finding.severity = FindingSeverity::kWarning;
      finding.ranks = {*rank.rank};
      finding.rank_count = 1;
      finding.title =
          fmt::format("Rank {}'s dump ends before {} #{} of {}, {} of {}", *rank.rank,
                      call->PrintedOp(), line.sequence, group.Title(),
                      are_last ? "the last call" : "among the last calls", RanksText(job, holders));
      finding.cause = "the dump ends before " + call->PrintedOp();
      finding.detail = fmt::format(
          "Rank {} had ended, or its dump was written before the others: the dumps do not show "
          "which. The call that it lacks: {}.",
          *rank.rank, call->Title());
      finding.since_us = call->start_ns / 1000;
      if (!call->file.empty()) finding.place = FindingPlace{call->file, call->line, {}};
      finding.suggestion = fmt::format("read what rank {} printed last", *rank.rank);
      finding.query = fmt::format(
          "SELECT id, rank, group_name, sequence_number, op, state, start_us, file, line "
          "FROM collective_run WHERE profile_id IN (SELECT id FROM profile WHERE run_id = {}) "
          "ORDER BY start_us DESC",
          context.job.run_id());
      const auto others =
          std::find_if(context.findings.begin(), context.findings.end(), IsOfMissingDumps);
      if (others != context.findings.end()) {
        if (!group.unknown.empty())
          finding.title += fmt::format("; {} left no dump", RanksText(job, group.unknown));
        finding.evidence.push_back(std::move(*others));
        context.findings.erase(others);
      }
      context.findings.push_back(std::move(finding));
      return;
    }
  }
}

}  // namespace tlparse
