// A call that one rank issued once more than the others: op, size and line agree under each number, and
// this rank waits at the end in one that no other has.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "facts/collectives/issued_group.h"

namespace tlparse {
namespace {

// The time between two calls of one rank that look alike and have neighbouring numbers.
struct Pause {
  std::int64_t ns = INT64_MAX;
  const IssuedCollective* call = nullptr;  // the second
};

// The shortest two of a rank, and how many it has.
struct Pauses {
  Pause first, second;
  std::size_t count = 0;
};

Pauses PausesOf(const std::vector<IssuedCollective>& issued) {
  Pauses pauses;
  for (std::size_t i = 1; i < issued.size(); ++i) {
    const IssuedCollective &before = issued[i - 1], &now = issued[i];
    if (now.sequence != before.sequence + 1 || now.file.empty() || !now.MayLookLike(before))
      continue;
    ++pauses.count;
    const Pause pause{now.start_ns - before.start_ns, &now};
    if (pause.ns < pauses.first.ns) {
      pauses.second = pauses.first;
      pauses.first = pause;
    } else if (pause.ns < pauses.second.ns) {
      pauses.second = pause;
    }
  }
  return pauses;
}

}  // namespace

std::string GroupFinder::LeftOutNote(const Positions& behind, const Positions& waiting) const {
  constexpr std::size_t kFewest = 3;
  if (behind.size() >= waiting.size()) return {};
  const IssuedCollective& first = group_.issued[behind.front()].front();
  const auto look_alike = [&](std::size_t position) {
    const std::vector<IssuedCollective>& own = group_.issued[position];
    return own.size() >= kFewest &&
           std::all_of(own.begin(), own.end(), [&](const IssuedCollective& one) {
             return !one.file.empty() && one.MayLookLike(first);
           });
  };
  for (const Positions& positions : {behind, waiting}) {
    if (!std::all_of(positions.begin(), positions.end(), look_alike)) return {};
  }
  return fmt::format(
      ". All calls of this group look alike: {} may also have left out an earlier one, and be done",
      Ranks(behind));
}

// The rank comes to the additional call without what it does between all others: after a tenth of the
// shortest pause that any rank has elsewhere.
void GroupFinder::TellExtraCall(const Positions& behind, const Positions& waiting,
                                std::int64_t sequence, CollectiveFinding& finding) const {
  constexpr std::size_t kFewest = 8;
  constexpr std::int64_t kTimesShorter = 10;
  if (waiting.size() != 1 || behind.size() < 2 || behind.size() + 1 != group_.ranks.size() ||
      Last(waiting.front()) != sequence || First(waiting.front()) > 1)
    return;
  const Pauses own = PausesOf(group_.issued[waiting.front()]);
  if (own.first.call == nullptr) return;
  std::int64_t shortest_ns = own.second.ns;
  std::size_t count = own.count - 1;
  for (const std::size_t position : behind) {
    const Pauses others = PausesOf(group_.issued[position]);
    shortest_ns = std::min(shortest_ns, others.first.ns);
    count += others.count;
  }
  if (count < kFewest || own.first.ns > shortest_ns / kTimesShorter) return;
  const IssuedCollective& extra = *own.first.call;
  const auto ms = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
  finding.kind = FindingKind::kCollectiveDivergence;
  finding.title = fmt::format(
      "{} may have issued {} #{} of {} at {} once more than {}: it came {:.3g} ms after #{}, "
      "no other of these calls before {:.3g} ms, and {} waits in #{}, which they did not reach",
      Ranks(waiting), extra.PrintedOp(), extra.sequence, group_.Title(), extra.Place(),
      Ranks(behind), ms(own.first.ns), extra.sequence - 1, ms(shortest_ns), Ranks(waiting),
      sequence);
  SetPlace(finding, group_, extra);
  finding.ranks = {group_.ranks[waiting.front()]};
  finding.cause = "a collective was added on one side";
  finding.advice = fmt::format("look at what {} does between #{} and #{}", Ranks(waiting),
                               extra.sequence - 1, extra.sequence);
}

}  // namespace tlparse
