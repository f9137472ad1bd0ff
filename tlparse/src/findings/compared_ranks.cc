#include "findings/compared_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "facts/job/compared_ranks.h"
#include "findings/context.h"
#include "findings/waiting_ranks.h"

namespace tlparse {
namespace {

// Where one of these ranks raised.
std::optional<FindingPlace> PlaceOfRaised(const std::vector<std::int64_t>& ranks,
                                          const Exceptions& raised) {
  for (const FatalException* const one : raised) {
    if (one->rank && !one->file.empty() &&
        std::find(ranks.begin(), ranks.end(), *one->rank) != ranks.end())
      return FindingPlace{one->file, one->line, {}};
  }
  return std::nullopt;
}

bool AreEqual(const std::vector<ComparedSide>& sides, std::string ComparedSide::*part) {
  return std::all_of(sides.begin(), sides.end(),
                     [&](const ComparedSide& side) { return side.*part == sides.front().*part; });
}

// "Rank 1 issued all_gather where ranks 0,2 issued all_reduce: #3"
std::string TitleOfCalls(const std::vector<ComparedSide>& sides) {
  const bool is_one_op = AreEqual(sides, &ComparedSide::op);
  const bool is_one_size = AreEqual(sides, &ComparedSide::what);
  const bool is_one_call = AreEqual(sides, &ComparedSide::sequence);
  std::string title;
  for (const ComparedSide& side : sides) {
    const bool is_first = &side == &sides.front();
    title += fmt::format("{}{} issued {}",
                         is_first            ? ""
                         : sides.size() == 2 ? " where "
                                             : ", ",
                         is_first ? RanksFirst(side.ranks) : RanksText(side.ranks), side.op);
    if (is_one_op && !is_one_size && !side.what.empty()) title += " of " + side.what;
    if (!is_one_call) title += " #" + side.sequence;
  }
  if (is_one_call && !sides.front().sequence.empty()) title += ": #" + sides.front().sequence;
  return title;
}

std::string TitleOfModels(const std::vector<ComparedSide>& sides) {
  std::string title;
  for (const ComparedSide& side : sides) {
    const bool is_first = &side == &sides.front();
    title +=
        fmt::format("{} of {} has {}{}", is_first ? "The model" : ", that", RanksText(side.ranks),
                    side.what, is_first ? " parameters in DistributedDataParallel" : "");
  }
  return title;
}

void SetSides(Finding& finding, const ComparedRanks& compared, const Exceptions& raised) {
  const std::vector<ComparedSide>& sides = compared.sides;
  const bool has_majority = compared.HasMajority();
  std::vector<std::int64_t> odd;
  for (const ComparedSide& side : sides) {
    if (has_majority && &side == &sides.back()) break;
    odd.insert(odd.end(), side.ranks.begin(), side.ranks.end());
  }
  std::sort(odd.begin(), odd.end());
  finding.title = compared.IsOfCalls() ? TitleOfCalls(sides) : TitleOfModels(sides);
  finding.cause = !compared.IsOfCalls()                ? "another number of parameters"
                  : AreEqual(sides, &ComparedSide::op) ? "another size"
                                                       : "another collective";
  finding.ranks = odd;
  finding.rank_count = odd.size();
  const std::optional<FindingPlace> own = PlaceOfRaised(odd, raised);
  const std::optional<FindingPlace> other = PlaceOfRaised(sides.back().ranks, raised);
  if (own || other) finding.place = own ? own : other;
  if (compared.IsOfCalls()) {
    finding.kind = FindingKind::kCollectiveDivergence;
    finding.detail +=
        " PyTorch compared the calls before it made them (TORCH_DISTRIBUTED_DEBUG=DETAIL).";
  }
  if (!finding.place) return;
  const std::string place = PlaceText(*finding.place);
  if (own && other && PlaceText(*other) != place)
    finding.suggestion =
        fmt::format("compare {} with {}: look for a branch that depends on the rank or on data",
                    place, PlaceText(*other));
  else if (compared.IsOfCalls())
    finding.suggestion = fmt::format(
        "compare what the ranks pass at {}, and how often each has made such calls before", place);
  else
    finding.suggestion =
        fmt::format("look for what depends on the rank in how the model at {} is made", place);
}

// Of ranks that are known by their numbers in a group alone.
void SetMissingOfGroup(Finding& finding, const MonitoredBarrier& barrier) {
  std::string numbers;
  for (const std::int64_t number : barrier.missing)
    numbers += fmt::format("{}{}", numbers.empty() ? "" : ",", number);
  finding.title =
      fmt::format("Rank 0 gave up at monitored_barrier{} after {}: another rank had not reached it",
                  finding.place ? " (" + PlaceText(*finding.place) + ")" : "",
                  SecondsText(barrier.waited_ms * 1000));
  finding.cause = "monitored_barrier not reached";
  finding.detail += fmt::format(
      " Not there: {} of the group in which rank 0 waited. If that is a group of some "
      "ranks, these are not ranks of the job.",
      (barrier.missing.size() == 1 ? "number " : "numbers ") + numbers);
  finding.ranks.clear();
  finding.suggestion = "look at which ranks that group has, and at what the missing one did";
}

void SetMissing(Finding& finding, const MonitoredBarrier& barrier,
                const std::vector<ProcessExit>& exits) {
  finding.ranks = barrier.missing;
  finding.rank_count = barrier.missing.size();
  finding.title = fmt::format("{} had not reached monitored_barrier after {}",
                              RanksFirst(barrier.missing), SecondsText(barrier.waited_ms * 1000));
  if (finding.place) finding.title += ": rank 0 gave up at " + PlaceText(*finding.place);
  finding.cause = "monitored_barrier not reached";
  finding.suggestion =
      fmt::format("look at what {} did before it: a wait, or a branch that leaves the call out",
                  RanksText(barrier.missing));
  for (const ProcessExit& one : exits) {
    const bool is_missing = one.rank && std::find(barrier.missing.begin(), barrier.missing.end(),
                                                  *one.rank) != barrier.missing.end();
    if (!is_missing || one.raised || !one.WasAsked() || one.stopped_at.empty()) continue;
    finding.detail +=
        fmt::format(" Rank {} was at {} when it was asked to end.", *one.rank, one.stopped_at);
    finding.place = PlaceOfStack(one.stopped_at);
  }
}

}  // namespace

bool SetCompared(Finding& finding, const Exceptions& raised,
                 const std::vector<ProcessExit>& exits) {
  if (const std::optional<ComparedRanks> compared = CompareByMessages(raised)) {
    SetSides(finding, *compared, raised);
    return true;
  }
  for (const FatalException* const one : raised) {
    const auto barrier = MissingAtBarrier(one->message);
    if (barrier && one->rank == 0) {  // else its numbers are those of another group
      if (!one->file.empty()) finding.place = FindingPlace{one->file, one->line, {}};
      if (IsOfAllRanks(*barrier, *one, raised))
        SetMissing(finding, *barrier, exits);
      else
        SetMissingOfGroup(finding, *barrier);
      return true;
    }
  }
  return false;
}

void SetNotJoined(Finding& finding, const Exceptions& raised) {
  std::set<std::int64_t> missing, waiting;
  std::string place;
  for (const FatalException* const one : raised) {
    const std::optional<std::int64_t> rank = MissingInStore(one->message);
    if (!one->rank || (!rank && !one->ComesOfPeer())) return;
    if (!rank) continue;  // it came later, and found them gone
    if (place.empty()) place = one->Place();
    missing.insert(*rank);
    waiting.insert(*one->rank);
  }
  for (const std::int64_t rank : waiting) missing.erase(rank);
  const bool are_named = std::all_of(finding.ranks.begin(), finding.ranks.end(),
                                     [&](std::int64_t rank) { return waiting.contains(rank); });
  if (missing.size() != 1 || !are_named) return;
  finding.detail += fmt::format(" The exception: {}.", finding.cause);
  finding.title =
      fmt::format("Rank {} had not joined the process group when {} gave up waiting at {}",
                  *missing.begin(), RanksText({waiting.begin(), waiting.end()}), place);
  finding.cause = "not joined";
  finding.ranks = {*missing.begin()};
  finding.rank_count = 1;
  finding.suggestion = fmt::format(
      "look at what rank {} did before it: whether it started, waited, or is slow to start",
      *missing.begin());
}

}  // namespace tlparse
