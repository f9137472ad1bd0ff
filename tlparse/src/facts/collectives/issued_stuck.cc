// Collectives that ranks have not ended, where no dump shows a rank that did not come.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "facts/collectives/issued_group.h"
#include "facts/collectives/issued_lines.h"
#include "facts/job/job.h"
#include "inputs/common/collective_op.h"

namespace tlparse {
namespace {

// The reason of one rank, of several.
std::string OfSeveral(std::string_view reason) {
  for (const auto& [one, several] :
       {std::pair<std::string_view, std::string_view>{"its dump is ", "their dumps are "},
        {"its dump has ", "their dumps have "},
        {"no dump of it ", "no dump of them "},
        {"the ring of its recorder ", "the rings of their recorders "}}) {
    if (reason.starts_with(one))
      return std::string(several) + std::string(reason.substr(one.size()));
  }
  return std::string(reason);
}

}  // namespace

std::string GroupFinder::WhyUnknown(std::size_t index) const {
  const IssuingRank& rank = job_.ranks[index];
  if (!rank.has_file) return "no dump of it is among the input";
  if (rank.is_cut) {
    const auto cut = std::find_if(job_.cut_dumps.begin(), job_.cut_dumps.end(),
                                  [&](const CutDump& dump) { return dump.rank == rank.name; });
    return cut == job_.cut_dumps.end() ? std::string("its dump is not whole")
                                       : "its dump is not whole: " + cut->problem;
  }
  // Gloo's counts calls that it does not record.
  const bool is_gloo = BackendOf(group_.issued.front().front().op) == "gloo";
  if (rank.is_empty && rank.last_of_all > 0 && group_.description == "default_pg" && !is_gloo)
    return fmt::format("its dump has no entries, but a pg_status whose last enqueued is #{}",
                       rank.last_of_all);
  if (rank.is_empty) return "its dump has no entries";
  if (!rank.is_whole) return "the ring of its recorder had wrapped";
  return "its dump has no entry of the group";
}

// Ranks that may be where the others wait for them, or not: by why that is not known.
std::map<std::string, std::vector<std::int64_t>> GroupFinder::UnknownRanks(
    std::int64_t sequence) const {
  std::vector<std::size_t> unknown = group_.unknown;
  for (std::size_t i = 0; i < group_.ranks.size(); ++i) {
    if (job_.ranks[group_.ranks[i]].is_cut && Last(i) < sequence)
      unknown.push_back(group_.ranks[i]);
  }
  for (std::size_t i = 0; !group_.has_members && i < job_.ranks.size(); ++i) {
    const IssuingRank& rank = job_.ranks[i];
    const bool is_in_group =
        std::find(group_.ranks.begin(), group_.ranks.end(), i) != group_.ranks.end();
    if (!is_in_group && (rank.is_cut || rank.is_empty)) unknown.push_back(i);
  }
  std::sort(unknown.begin(), unknown.end());
  std::map<std::string, std::vector<std::int64_t>> by_reason;
  for (const std::size_t index : unknown) {
    if (job_.ranks[index].rank) by_reason[WhyUnknown(index)].push_back(*job_.ranks[index].rank);
  }
  return by_reason;
}

bool GroupFinder::IsIn(std::int64_t rank) const {
  return std::any_of(group_.ranks.begin(), group_.ranks.end(),
                     [&](std::size_t index) { return job_.ranks[index].rank == rank; });
}

bool GroupFinder::FindUnknownPlace() {
  for (const IssuedLine& line : IssuedLines(job_, group_)) {
    if (!line.IsOpen()) continue;
    Positions open;
    std::int64_t longest_ns = 0;
    for (const std::size_t position : Holders(line.sequence)) {
      const IssuedCollective& one = *group_.At(position, line.sequence).front();
      if (!one.IsOpen()) continue;
      open.push_back(position);
      longest_ns =
          std::max(longest_ns, job_.ranks[group_.ranks[position]].last_known_ns - one.start_ns);
    }
    const auto unknown = UnknownRanks(line.sequence);
    if (open.empty() || unknown.empty()) return false;
    const IssuedCollective& one = *group_.At(open.front(), line.sequence).front();
    std::vector<std::int64_t> ranks;
    std::string reasons;
    for (const auto& [of_one, of_reason] : unknown) {
      const std::string reason = of_reason.size() == 1 ? of_one : OfSeveral(of_one);
      ranks.insert(ranks.end(), of_reason.begin(), of_reason.end());
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", RanksText(of_reason), reason);
    }
    std::sort(ranks.begin(), ranks.end());
    CollectiveFinding finding;
    finding.kind = FindingKind::kStuck;
    finding.severity = SeverityOfWait(job_, longest_ns, one.timeout_ms, false);
    // Of a healthy job a rank is inside a call too when its dump is taken; and where most ranks are unknown,
    // only some of the dumps may have been given.
    if (finding.severity == FindingSeverity::kWarning && ranks.size() >= open.size())
      finding.severity = FindingSeverity::kNote;
    const std::string waited =
        Open(open, line.sequence,
             fmt::format("{} #{} of {}", one.PrintedOp(), line.sequence, group_.Title()));
    const std::string why = unknown.size() > 1  ? "no whole dump of theirs shows it"
                            : ranks.size() == 1 ? unknown.begin()->first
                                                : OfSeveral(unknown.begin()->first);
    const bool are_members =
        group_.has_members ||
        std::all_of(ranks.begin(), ranks.end(), [&](std::int64_t rank) { return IsIn(rank); });
    finding.title =
        are_members
            ? fmt::format("{}; how far {} came is not known: {}", waited, RanksText(ranks), why)
            : fmt::format("{}; whether {} {} to the group is not known: {}", waited,
                          RanksText(ranks), ranks.size() == 1 ? "belongs" : "belong", why);
    finding.detail = fmt::format("{}: {}, {}", Ranks(open), one.Title(), Wait(open, line.sequence));
    if (unknown.size() > 1) finding.detail += "; " + reasons;
    SetPlace(finding, group_, one);
    for (const std::size_t position : open) finding.ranks.push_back(group_.ranks[position]);
    finding.advice = fmt::format(
        "get {} of {}, or look at {}", ranks.size() == 1 ? "a whole dump" : "whole dumps",
        RanksText(ranks), ranks.size() == 1 ? "its stack" : "their stacks");
    findings_.push_back(std::move(finding));
    return true;
  }
  return false;
}

const IssuedCollective* CurrentOf(const std::vector<IssuedCollective>& own) {
  if (own.back().IsOpen() && !own.back().IsOnDevice()) return &own.back();
  const auto ended = std::find_if(own.rbegin(), own.rend(),
                                  [](const IssuedCollective& one) { return !one.IsOnDevice(); });
  return ended.base() == own.end() ? nullptr : &*ended.base();
}

RankSet InsideTogether(const IssuedJob& job) {
  std::vector<std::int64_t> last_ns(job.ranks.size(), INT64_MIN);
  for (const IssuedGroup& group : job.groups) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i)
      last_ns[group.ranks[i]] = std::max(last_ns[group.ranks[i]], group.issued[i].back().start_ns);
  }
  RankSet inside;
  for (const IssuedGroup& group : job.groups) {
    const IssuedCollective* const first = CurrentOf(group.issued.front());
    if (first == nullptr || !first->IsOnDevice()) continue;
    const bool are_all =
        std::all_of(group.issued.begin(), group.issued.end(), [&](const auto& own) {
          const IssuedCollective* const current = CurrentOf(own);
          return current != nullptr && current->sequence == first->sequence;
        });
    for (std::size_t i = 0; are_all && i < group.ranks.size(); ++i) {
      if (group.issued[i].back().start_ns == last_ns[group.ranks[i]]) inside.insert(group.ranks[i]);
    }
  }
  return inside;
}

bool GroupFinder::IsCurrent(std::size_t position, std::int64_t sequence) const {
  const IssuedCollective* const current = CurrentOf(group_.issued[position]);
  return current != nullptr && current->sequence == sequence;
}

std::int64_t LastEndBefore(const IssuedJob& job, std::size_t rank, std::int64_t time_ns) {
  std::int64_t last_ns = 0;
  for (const IssuedGroup& group : job.groups) {
    const auto at = std::lower_bound(group.ranks.begin(), group.ranks.end(), rank);
    if (at == group.ranks.end() || *at != rank) continue;
    for (const IssuedCollective& one :
         group.issued[static_cast<std::size_t>(at - group.ranks.begin())]) {
      if (one.start_ns < time_ns) last_ns = std::max(last_ns, one.end_ns);
    }
  }
  return last_ns;
}

// From when the last one came, by the latest time in any dump; or that which each of them waited. A device
// that has not started it has been busy with what was enqueued before, at least until a call of it ended.
std::int64_t GroupFinder::WaitedTogether(std::int64_t sequence) const {
  std::int64_t each_ns = INT64_MAX, came_ns = INT64_MIN, known_ns = INT64_MIN;
  for (std::size_t i = 0; i < group_.ranks.size(); ++i) {
    const IssuingRank& rank = job_.ranks[group_.ranks[i]];
    const IssuedCollective& one = *group_.At(i, sequence).front();
    const std::int64_t start_ns =
        one.IsInIt() ? one.start_ns
                     : std::max(one.start_ns, LastEndBefore(job_, group_.ranks[i], one.start_ns));
    const std::int64_t last_ns = rank.last_known_ns;
    each_ns = std::min(each_ns, last_ns - start_ns);
    came_ns = std::max(came_ns, start_ns);
    known_ns = std::max(known_ns, last_ns);
  }
  return std::max(each_ns, known_ns - came_ns);
}

bool HasEarlierOpen(const IssuedJob& job, const IssuedGroup* group, std::size_t rank,
                    std::int64_t time_ns) {
  const auto has = [&](const auto& other, const auto& call_of) {
    const auto at = std::lower_bound(other.ranks.begin(), other.ranks.end(), rank);
    if (at == other.ranks.end() || *at != rank) return false;
    const auto& issued = other.issued[static_cast<std::size_t>(at - other.ranks.begin())];
    return std::any_of(issued.rbegin(), issued.rend(), [&](const auto& one) {
      return call_of(one).IsOpen() && call_of(one).start_ns < time_ns;
    });
  };
  const auto self = [](const IssuedCollective& one) -> const IssuedCollective& { return one; };
  const auto call = [](const IssuedMessage& one) -> const IssuedCollective& { return one.call; };
  const std::int64_t open_ns = job.ranks[rank].open_message_ns;
  return (open_ns > 0 && open_ns < time_ns) ||
         std::any_of(
             job.groups.begin(), job.groups.end(),
             [&](const IssuedGroup& other) { return &other != group && has(other, self); }) ||
         std::any_of(job.message_groups.begin(), job.message_groups.end(),
                     [&](const MessageGroup& other) { return has(other, call); });
}

// Where the last call of a rank that is behind is of another group, whose other ranks lack it: they are why it
// did not come.
bool GroupFinder::NameWhoLacksLast(const Positions& behind, CollectiveFinding& finding) const {
  const std::size_t rank = group_.ranks[behind.front()];
  const std::optional<LackedCall> lacked = LackedByOthers(job_, group_, rank);
  if (behind.size() != 1 || !lacked ||
      std::any_of(lacked->ranks.begin(), lacked->ranks.end(),
                  [&](std::size_t one) { return blocked_.contains(one); }))
    return false;
  finding.title =
      fmt::format("{} had not reached {} #{} of {}, the last call of {}; {}",
                  RanksText(job_, lacked->ranks), lacked->call->PrintedOp(), lacked->call->sequence,
                  lacked->group->Title(), Ranks(behind), finding.title);
  finding.ranks = lacked->ranks;
  return true;
}

// All ranks of the dumps are inside the same collective. A job that runs has such moments: only a long
// wait is a problem.
bool GroupFinder::FindStuck() {
  Positions all, not_started;
  std::int64_t sequence = 0;
  for (std::size_t i = 0; i < group_.ranks.size(); ++i) {
    const IssuedCollective* const current = CurrentOf(group_.issued[i]);
    if (current == nullptr || (i > 0 && current->sequence != sequence)) return false;
    sequence = current->sequence;
    all.push_back(i);
    if (current->progress == IssuedProgress::kNotStarted) not_started.push_back(i);
  }
  const IssuedCollective& one = *CurrentOf(group_.issued.front());
  const std::int64_t waited_ns = WaitedTogether(sequence);
  const bool is_long = IsLongWait(job_, waited_ns, one.timeout_ms);
  // Others than devices record the end of a call some time after it.
  if (!is_long && (all.size() < 2 || one.progress == IssuedProgress::kOpen)) return false;
  CollectiveFinding finding;
  finding.kind = FindingKind::kStuck;
  finding.severity = is_long ? FindingSeverity::kError : FindingSeverity::kNote;
  finding.title =
      Open(all, sequence, fmt::format("{} #{} of {}", one.PrintedOp(), sequence, group_.Title()));
  const bool is_known = std::any_of(all.begin(), all.end(), [&](std::size_t position) {
    return KnowsEnd(position, *CurrentOf(group_.issued[position]));
  });
  const double waited_s = static_cast<double>(waited_ns) / 1e9;
  finding.title += is_long    ? fmt::format(": for {:.1f} s at least", waited_s)
                   : is_known ? fmt::format(": for {:.3f} s when the dumps were written", waited_s)
                              : std::string("; for how long is not in the dumps");
  finding.is_of_unknown_length = !is_long && !is_known;
  finding.detail = one.Title();
  if (!is_long)
    finding.detail +=
        ". A dump of a job that runs can look the same. If the job hung then, this call did not "
        "end "
        "although all ranks of the dumps had come to it";
  if (one.timeout_ms > 0)
    finding.detail +=
        fmt::format(". Its timeout: {:g} s", static_cast<double>(one.timeout_ms) / 1e3);
  SetPlace(finding, group_, one);
  for (const std::size_t position : all) finding.waiting.push_back(group_.ranks[position]);
  finding.is_behind_another =
      std::any_of(not_started.begin(), not_started.end(), [&](std::size_t position) {
        return HasEarlierOpen(job_, &group_, group_.ranks[position],
                              CurrentOf(group_.issued[position])->start_ns);
      });
  const std::string look =
      not_started.empty()
          ? std::string("look at the network, the devices and the processes themselves")
      : not_started.size() == all.size()
          ? std::string("look at what the devices have to do before it, on the same stream")
          : fmt::format("look at what the {} of {} to do before it, on the same stream",
                        not_started.size() == 1 ? "device" : "devices",
                        Ranks(not_started) + (not_started.size() == 1 ? " has" : " have"));
  finding.advice =
      group_.members.empty()
          ? fmt::format("if the group has other members, get their dumps; else {}", look)
          : fmt::format("all members issued it: {}", look);
  if (!is_long) finding.advice = fmt::format("{}; if so: {}", kLookForWatchdog, look);
  findings_.push_back(std::move(finding));
  return true;
}

}  // namespace tlparse
