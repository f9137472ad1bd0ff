// Ranks that wait for each other in collectives of several groups.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "facts/collectives/issued_group.h"
#include "facts/collectives/issued_lines.h"
#include "facts/job/job.h"

namespace tlparse {
namespace {

// Removes the waits that can end. Each that is left misses a rank that waits in another one of them.
void KeepCycles(std::vector<OpenWait>& waits) {
  for (bool again = true; again;) {
    RankSet waiting, missing;
    for (const OpenWait& wait : waits) {
      waiting.insert(wait.waiting.begin(), wait.waiting.end());
      missing.insert(wait.missing.begin(), wait.missing.end());
    }
    const auto in = [](const RankSet& set) {
      return [&set](std::size_t rank) { return set.count(rank) > 0; };
    };
    const std::size_t before = waits.size();
    waits.erase(std::remove_if(
                    waits.begin(), waits.end(),
                    [&](const OpenWait& wait) {
                      return std::none_of(wait.missing.begin(), wait.missing.end(), in(waiting)) ||
                             std::none_of(wait.waiting.begin(), wait.waiting.end(), in(missing));
                    }),
                waits.end());
    again = waits.size() < before;
  }
}

std::string SetText(const IssuedJob& job, const RankSet& set) {
  return RanksText(job, std::vector<std::size_t>(set.begin(), set.end()));
}

// "ranks 0-2 wait in all_reduce #4 of group dp (1) for rank 3"
std::string WaitText(const IssuedJob& job, const OpenWait& wait) {
  const bool is_one = wait.waiting.size() == 1;
  const std::string call = fmt::format("{} #{} of {}", wait.line.usual->PrintedOp(),
                                       wait.line.sequence, wait.group->Title());
  if (wait.line.waiting.size() < wait.waiting.size())
    return fmt::format("{} {} enqueued {}, which {} had not", SetText(job, wait.waiting),
                       is_one ? "has" : "have", call, SetText(job, wait.missing));
  return fmt::format("{} {} in {} for {}{}", SetText(job, wait.waiting), is_one ? "waits" : "wait",
                     call, SetText(job, wait.missing),
                     wait.IsOfDevices() ? ", whose device has not started it" : "");
}

}  // namespace

std::string RanksText(const IssuedJob& job, const std::vector<std::size_t>& set) {
  std::vector<std::int64_t> ranks;
  std::string names;
  for (const std::size_t index : set) {
    if (job.ranks[index].rank)
      ranks.push_back(*job.ranks[index].rank);
    else
      names += (names.empty() ? "" : ", ") + job.ranks[index].name;
  }
  std::sort(ranks.begin(), ranks.end());
  if (ranks.empty()) return names;
  return fmt::format("{} {}{}{}", ranks.size() == 1 ? "rank" : "ranks", FormatRankRanges(ranks),
                     names.empty() ? "" : ", ", names);
}

std::string Capital(std::string text) {
  if (text.starts_with("rank")) text.front() = 'R';
  return text;
}

std::vector<std::size_t> AbsentMembers(const IssuedJob& job, const IssuedGroup& group) {
  std::vector<std::size_t> absent;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const IssuingRank& rank = job.ranks[i];
    // c10d's group of all ranks
    const bool is_of_all = group.members.empty() && group.description == "default_pg";
    const bool is_member =
        rank.rank && (is_of_all || std::find(group.members.begin(), group.members.end(),
                                             *rank.rank) != group.members.end());
    if (is_member && rank.has_file && !rank.is_cut && rank.is_whole &&
        std::find(group.ranks.begin(), group.ranks.end(), i) == group.ranks.end() &&
        std::find(group.unknown.begin(), group.unknown.end(), i) == group.unknown.end())
      absent.push_back(i);
  }
  return absent;
}

std::vector<OpenWait> OpenWaits(const IssuedJob& job) {
  std::vector<OpenWait> waits;
  for (const IssuedGroup& group : job.groups) {
    const std::vector<std::size_t> absent = AbsentMembers(job, group);
    RankSet
        inside;  // of an earlier call, behind which this one waits in the stream of their device
    for (IssuedLine& line : IssuedLines(job, group)) {
      OpenWait wait{&group, {}, {}, {line.missing.begin(), line.missing.end()}};
      wait.missing.insert(absent.begin(), absent.end());
      for (const auto* ranks : {&line.waiting, &line.not_started, &line.enqueued})
        wait.waiting.insert(ranks->begin(), ranks->end());
      if (wait.missing.empty() && !line.waiting.empty()) {
        // All have enqueued it: those whose devices are in it wait for the others' devices.
        wait.waiting = {line.waiting.begin(), line.waiting.end()};
        wait.missing = {line.not_started.begin(), line.not_started.end()};
      }
      std::erase_if(wait.waiting, [&](std::size_t rank) { return inside.contains(rank); });
      if (line.usual->IsOnDevice()) {
        for (const auto* ranks : {&line.waiting, &line.not_started, &line.enqueued})
          inside.insert(ranks->begin(), ranks->end());
      }
      if (wait.waiting.empty() || wait.missing.empty()) continue;
      wait.line = std::move(line);
      waits.push_back(std::move(wait));
    }
  }
  return waits;
}

RankSet WaitForUnknown(const IssuedJob& job) {
  RankSet ranks;
  for (const IssuedGroup& group : job.groups) {
    if (group.unknown.empty()) continue;
    for (const IssuedLine& line : IssuedLines(job, group)) {
      if (!line.missing.empty() || !NeedsAllRanks(line.usual->plain_op)) continue;
      for (const auto* of_line : {&line.waiting, &line.not_started, &line.enqueued})
        ranks.insert(of_line->begin(), of_line->end());
    }
  }
  return ranks;
}

bool FindCycle(const IssuedJob& job, std::vector<OpenWait> waits,
               std::vector<CollectiveFinding>& findings) {
  constexpr std::size_t kMost = 4;
  KeepCycles(waits);
  if (waits.empty()) return false;
  std::erase_if(findings, [&](const CollectiveFinding& earlier) {
    return earlier.kind == FindingKind::kStuck &&
           std::any_of(waits.begin(), waits.end(), [&](const OpenWait& wait) {
             return wait.group->name == earlier.group && wait.line.sequence == earlier.sequence;
           });
  });
  // Calls that differ at an earlier number of one of the groups are why.
  const bool is_behind = std::any_of(waits.begin(), waits.end(), [&](const OpenWait& wait) {
    return std::any_of(findings.begin(), findings.end(), [&](const CollectiveFinding& earlier) {
      return earlier.kind == FindingKind::kCollectiveDivergence &&
             earlier.severity == FindingSeverity::kError && !earlier.is_p2p &&
             earlier.group == wait.group->name && earlier.sequence < wait.line.sequence;
    });
  });
  if (is_behind) return true;
  std::stable_sort(waits.begin(), waits.end(), [](const OpenWait& a, const OpenWait& b) {
    return a.line.first_ns < b.line.first_ns;
  });
  // Of two groups of ranks the smaller one is the odd one.
  const OpenWait* odd = &waits.front();
  const bool has_odd = waits.size() == 2 && waits[0].waiting.size() != waits[1].waiting.size();
  if (has_odd && waits[1].waiting.size() < waits[0].waiting.size()) odd = &waits[1];
  CollectiveFinding finding;
  finding.kind = FindingKind::kCollectiveDivergence;
  finding.severity = FindingSeverity::kError;
  RankSet ranks;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (!has_odd || odd == &waits[i])
      ranks.insert(waits[i].waiting.begin(), waits[i].waiting.end());
    if (i >= kMost) continue;
    const IssuedCollective& call = *waits[i].line.usual;
    finding.title += (i == 0 ? "" : ", ") + WaitText(job, waits[i]);
    finding.detail +=
        fmt::format("{}{} issued {}{}", i == 0 ? "" : "; ", SetText(job, waits[i].waiting),
                    call.Title(), waits.size() == 2 ? " first" : "");
  }
  if (waits.size() > kMost) finding.title += fmt::format(", and {} more", waits.size() - kMost);
  finding.detail += ". None of these calls can end before another one of them does";
  const IssuedCollective& call = *odd->line.usual;
  finding.ranks.assign(ranks.begin(), ranks.end());
  SetPlace(finding, *odd->group, call);
  finding.cause = "ranks issued collectives of different groups in different orders";
  const OpenWait& other = odd == &waits[0] ? waits[1] : waits[0];
  const std::string place = call.Place(), other_place = other.line.usual->Place();
  finding.advice = "issue collectives of overlapping groups in one order on all ranks";
  if (!place.empty() && place == other_place)
    finding.advice += fmt::format(": see the order of the groups at {}", place);
  else if (!place.empty() && !other_place.empty())
    finding.advice += fmt::format(": compare {} with {}", place, other_place);
  findings.push_back(std::move(finding));
  return true;
}

}  // namespace tlparse
