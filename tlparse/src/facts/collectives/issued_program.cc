// The calls of one rank against those of all others, over all groups: one that it left out or added, which
// the numbers and sizes of its group alone do not show.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "facts/collectives/issued_group.h"
#include "facts/collectives/issued_lines.h"

namespace tlparse {
namespace {

struct ProgramCall {
  const IssuedGroup* group = nullptr;
  const IssuedCollective* call = nullptr;
  std::size_t kind =
      0;  // of the program: op, line, what must be alike of it, and what the group is for
};
using Program = std::vector<ProgramCall>;  // of one rank, in order

// By rank; empty: its dump does not hold all calls, or they come from several threads.
std::vector<Program> ProgramsOf(const IssuedJob& job) {
  std::unordered_map<std::string, std::size_t> recorded, kinds;
  std::vector<Program> programs(job.ranks.size());
  for (const IssuedGroup& group : job.groups) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      for (const IssuedCollective& one : group.issued[i]) {
        // Calls that are recorded alike are of one kind; so are those that may differ in size.
        const auto [known, is_new] =
            recorded.try_emplace(fmt::format("{}|{}|{}|{}|{}|{}|{}", one.op, one.shapes, one.dtype,
                                             one.file, one.line, one.function, group.description));
        if (is_new)
          known->second =
              kinds
                  .try_emplace(fmt::format("{}|{}|{}|{}", IssuedSignature({&one}), one.Place(),
                                           one.function, group.description),
                               kinds.size())
                  .first->second;
        programs[group.ranks[i]].push_back({&group, &one, known->second});
      }
    }
  }
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    Program& own = programs[rank];
    const bool is_whole = job.ranks[rank].rank && job.ranks[rank].has_file &&
                          job.ranks[rank].is_whole && !job.ranks[rank].is_cut &&
                          std::all_of(own.begin(), own.end(), [&](const ProgramCall& one) {
                            return one.call->IsRecorded() && !one.call->file.empty() &&
                                   one.call->thread == own.front().call->thread;
                          });
    if (!is_whole) own.clear();
    std::stable_sort(own.begin(), own.end(), [](const ProgramCall& a, const ProgramCall& b) {
      return a.call->start_ns < b.call->start_ns;
    });
  }
  return programs;
}

// Up to where one of the two ends: how many calls are alike, from these on.
std::size_t CommonLength(const Program& a, std::size_t a_at, const Program& b, std::size_t b_at) {
  std::size_t count = 0;
  while (a_at + count < a.size() && b_at + count < b.size() &&
         a[a_at + count].kind == b[b_at + count].kind)
    ++count;
  return count;
}

bool IsPrefix(const Program& a, std::size_t a_at, const Program& b, std::size_t b_at) {
  return CommonLength(a, a_at, b, b_at) == std::min(a.size() - a_at, b.size() - b_at);
}

// The call in which two programs differ, if without it all that follows is alike.
struct OneCall {
  std::size_t at = 0;     // its place in both
  bool is_added = false;  // the odd one has it
};
std::optional<OneCall> DifferInOne(const Program& odd, const Program& usual) {
  constexpr std::size_t kLeastAfter = 3;
  const std::size_t at = CommonLength(odd, 0, usual, 0);
  for (const bool is_added : {false, true}) {
    const std::size_t odd_at = at + (is_added ? 1 : 0), usual_at = at + (is_added ? 0 : 1);
    if (odd.size() >= odd_at + kLeastAfter && usual.size() >= usual_at + kLeastAfter &&
        IsPrefix(odd, odd_at, usual, usual_at))
      return OneCall{at, is_added};
  }
  return std::nullopt;
}

// One rank whose program is not the others', and these: each has the begin of the longest of them.
struct OddRank {
  std::size_t rank = 0;
  std::vector<std::size_t> alike;
  const Program* usual = nullptr;
};
std::optional<OddRank> OddRankOf(const std::vector<Program>& programs) {
  constexpr std::size_t kFewest = 3;
  OddRank odd;
  std::vector<std::size_t> others;
  // One of the first two has what the others have.
  for (std::size_t candidate = 0; candidate < std::min<std::size_t>(programs.size(), 2);
       ++candidate) {
    std::vector<std::size_t> own, rest;
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
      if (programs[rank].empty()) return std::nullopt;
      (IsPrefix(programs[candidate], 0, programs[rank], 0) ? own : rest).push_back(rank);
    }
    if (own.size() <= odd.alike.size()) continue;
    odd.alike = std::move(own);
    others = std::move(rest);
  }
  if (odd.alike.size() < kFewest || others.size() != 1) return std::nullopt;
  odd.rank = others.front();
  for (const std::size_t rank : odd.alike) {
    if (odd.usual == nullptr || programs[rank].size() > odd.usual->size())
      odd.usual = &programs[rank];
  }
  return odd;
}

// The group on which a rank issues such calls before one, and the number that its next call there has.
std::pair<const IssuedGroup*, std::int64_t> GroupOf(const Program& program, const OneCall& one,
                                                    const ProgramCall& call) {
  const IssuedGroup* group = one.is_added ? call.group : nullptr;
  std::int64_t number = 1;
  for (std::size_t i = 0; i < one.at && group == nullptr; ++i)
    group = program[i].kind == call.kind ? program[i].group : nullptr;
  for (std::size_t i = 0; i < one.at; ++i)
    number = program[i].group == group ? program[i].call->sequence + 1 : number;
  return {group, number};
}

// Whether the ranks of a group have issued as many calls.
bool IsEven(const IssuedGroup& group) {
  return std::all_of(group.issued.begin(), group.issued.end(), [&](const auto& one) {
    return one.back().sequence == group.issued.front().back().sequence;
  });
}

}  // namespace

bool FindOddProgram(const IssuedJob& job, std::vector<CollectiveFinding>& findings) {
  if (std::all_of(job.groups.begin(), job.groups.end(), IsEven) ||
      std::any_of(findings.begin(), findings.end(), [](const CollectiveFinding& one) {
        return one.kind == FindingKind::kCollectiveDivergence;
      }))
    return false;
  const std::vector<Program> programs = ProgramsOf(job);
  const std::optional<OddRank> odd = OddRankOf(programs);
  if (!odd) return false;
  const auto& [rank, alike, usual] = *odd;
  const std::optional<OneCall> one = DifferInOne(programs[rank], *usual);
  if (!one) return false;
  const ProgramCall& call = (one->is_added ? programs[rank] : *usual)[one->at];
  const auto [group, number] = GroupOf(programs[rank], *one, call);
  if (group == nullptr || group->ranks.size() < 2 || !group->unknown.empty()) return false;
  std::vector<std::size_t> peers = group->ranks;
  std::erase(peers, rank);
  CollectiveFinding finding;
  finding.kind = FindingKind::kCollectiveDivergence;
  finding.severity = FindingSeverity::kError;
  finding.title = fmt::format(
      "{} {} {} #{} of {} at {}, {} {} {}: its later calls there are paired with {} ones of {}",
      RanksText(job, {rank}), one->is_added ? "issued" : "left out", call.call->PrintedOp(), number,
      group->Title(), call.call->Place(), one->is_added ? "where" : "which", RanksText(job, alike),
      one->is_added ? "issue none" : "issue there", one->is_added ? "earlier" : "later",
      RanksText(job, peers));
  finding.detail = fmt::format(
      "{}. The first {} calls of {} over all groups are those of the others, and so are all after "
      "it. Op and size agree, so the collectives complete with wrong numbers",
      call.call->Title(), one->at, RanksText(job, {rank}));
  SetPlace(finding, *group, *call.call);
  finding.sequence = number;
  finding.ranks = {rank};
  finding.cause = "a collective was left out or added on one side";
  finding.advice = fmt::format("look for a branch that depends on the rank or on data before {}",
                               call.call->Place());
  findings.push_back(std::move(finding));
  return true;
}

}  // namespace tlparse
