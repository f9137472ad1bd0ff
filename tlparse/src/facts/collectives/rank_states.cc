#include "facts/collectives/rank_states.h"

#include <optional>
#include <utility>

namespace tlparse {
namespace {

// Ascending and apart.
std::vector<TimeSpan> Merged(std::vector<TimeSpan> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const TimeSpan& a, const TimeSpan& b) { return a.from_ns < b.from_ns; });
  std::vector<TimeSpan> merged;
  for (const TimeSpan& one : spans) {
    if (!merged.empty() && one.from_ns <= merged.back().to_ns)
      merged.back().to_ns = std::max(merged.back().to_ns, one.to_ns);
    else
      merged.push_back(one);
  }
  return merged;
}

// Its ends included. `spans` are merged.
bool Touches(const std::vector<TimeSpan>& spans, const TimeSpan& time) {
  const auto first = std::partition_point(
      spans.begin(), spans.end(), [&](const TimeSpan& one) { return one.to_ns < time.from_ns; });
  return first != spans.end() && first->from_ns <= time.to_ns;
}

// Without times that end as another leaves its call before one of `ranks` has issued any.
void TakeOutLeft(const std::set<std::int64_t>& left_ns, const SpansByRank& issued,
                 const std::set<std::int64_t>& ranks, std::vector<TimeSpan>& awaited) {
  std::vector<TimeSpan> own;
  for (const std::int64_t rank : ranks) {
    const auto found = issued.find(rank);
    if (found != issued.end()) own.insert(own.end(), found->second.begin(), found->second.end());
  }
  own = Merged(std::move(own));
  std::erase_if(awaited, [&](const TimeSpan& one) {
    return left_ns.contains(one.to_ns) && !Touches(own, one);
  });
}

}  // namespace

SpansByRank AwaitedTimes(const RankStates& states, const SpansByRank& issued,
                         const std::set<std::int64_t>& together) {
  SpansByRank awaited;
  std::set<std::int64_t> left_ns;
  bool has_left = false;
  std::vector<bool> is_elsewhere(states.size(), true), is_together(states.size());
  for (std::size_t i = 0; i < states.size(); ++i)
    is_together[i] = together.contains(states.RankAt(i));
  // One rank does not wait if their indices sum up to its own.
  std::size_t waiting = 0, waiting_beside = 0, elsewhere_together = together.size(),
              free_sum = states.size() * (states.size() - 1) / 2;
  states.ForEach(
      [&](const auto& before, const auto& now, std::size_t index) {
        if (before.IsWaiting() != now.IsWaiting()) {
          const bool waits = now.IsWaiting();
          waits ? ++waiting : --waiting;
          if (!is_together[index]) waits ? ++waiting_beside : --waiting_beside;
          has_left = has_left || (!waits && now.calls == 0);
          free_sum = waits ? free_sum - index : free_sum + index;
        }
        if (is_together[index] && is_elsewhere[index] != now.IsElsewhere())
          now.IsElsewhere() ? ++elsewhere_together : --elsewhere_together;
        is_elsewhere[index] = now.IsElsewhere();
      },
      [&](std::int64_t from_ns, std::int64_t to_ns) {
        if (std::exchange(has_left, false)) left_ns.insert(from_ns);
        std::optional<std::int64_t> rank;
        if (waiting_beside + together.size() == states.size() && elsewhere_together > 0)
          rank = *together.begin();
        else if (waiting + 1 == states.size() && is_elsewhere[free_sum] && !is_together[free_sum])
          rank = states.RankAt(free_sum);
        if (!rank) return;
        std::vector<TimeSpan>& spans = awaited[*rank];
        if (!spans.empty() && spans.back().to_ns == from_ns)
          spans.back().to_ns = to_ns;
        else
          spans.push_back({from_ns, to_ns});
      });
  for (auto& [rank, spans] : awaited) {
    const bool are_several = together.contains(rank);
    TakeOutLeft(left_ns, issued, are_several ? together : std::set<std::int64_t>{rank}, spans);
  }
  std::erase_if(awaited, [](const auto& one) { return one.second.empty(); });
  return awaited;
}

std::set<std::int64_t> SlowTogether(const RankStates& states) {
  std::vector<std::int64_t> outside_ns(states.size()), since_ns(states.size());
  std::vector<bool> is_elsewhere(states.size(), true);
  std::size_t waiting = 0;
  std::int64_t half_ns = 0;  // in which half of all waited, until now
  states.ForEach(
      [&](const auto& before, const auto& now, std::size_t index) {
        waiting += now.IsWaiting() - before.IsWaiting();
        if (is_elsewhere[index] == now.IsElsewhere()) return;
        if (is_elsewhere[index]) outside_ns[index] += half_ns - since_ns[index];
        is_elsewhere[index] = now.IsElsewhere();
        since_ns[index] = half_ns;
      },
      [&](std::int64_t from_ns, std::int64_t to_ns) {
        if (2 * waiting >= states.size()) half_ns += to_ns - from_ns;
      });
  std::vector<std::size_t> order(states.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    if (is_elsewhere[i]) outside_ns[i] += half_ns - since_ns[i];
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return outside_ns[a] > outside_ns[b]; });
  std::set<std::int64_t> together;
  for (std::size_t i = 0; i < order.size() / 2; ++i) {
    const std::int64_t own_ns = outside_ns[order[i]];
    if (3 * own_ns < 2 * outside_ns[order.front()]) break;
    together.insert(states.RankAt(order[i]));
    if (together.size() > 1 && own_ns >= 3 * outside_ns[order[i + 1]]) return together;
  }
  return {};
}

namespace {

// Whether one of the calls ends when `call` does, which began before that: a tenth of the longer one apart at
// most, or a millisecond. `calls` are ascending by their ends.
bool HasSameEnd(const std::vector<TimeSpan>& calls, const TimeSpan& call) {
  constexpr std::int64_t kLeastNs = 1'000'000, kPart = 10;
  const auto first = std::partition_point(
      calls.begin(), calls.end(), [&](const TimeSpan& one) { return one.to_ns <= call.from_ns; });
  constexpr std::ptrdiff_t kMost = 64;
  const auto last = first + std::min(kMost, calls.end() - first);
  return std::any_of(first, last, [&](const TimeSpan& one) {
    const std::int64_t apart_ns = std::max(one.to_ns, call.to_ns) - std::min(one.to_ns, call.to_ns);
    return one.from_ns < call.to_ns &&
           apart_ns <= std::max(kLeastNs, std::max(one.Length(), call.Length()) / kPart);
  });
}

}  // namespace

RankTimes TimesOfGroup(const RankTimes& of, const std::set<std::int64_t>& group) {
  RankTimes part;
  part.common = of.common;
  part.issued = of.issued;
  part.compiled_ns = of.compiled_ns;
  part.compiles = of.compiles;
  part.is_of_devices = of.is_of_devices;
  part.names = of.names;
  SpansByRank by_end;
  for (const std::int64_t rank : group) {
    std::vector<TimeSpan>& calls = by_end[rank];
    calls = of.calls.at(rank);
    std::sort(calls.begin(), calls.end(),
              [](const TimeSpan& a, const TimeSpan& b) { return a.to_ns < b.to_ns; });
  }
  for (const std::int64_t rank : group) {
    part.work.emplace(rank, of.work.at(rank));
    std::vector<TimeSpan>& own = part.calls[rank];
    for (const TimeSpan& call : by_end.at(rank)) {
      const bool is_of_all = std::all_of(group.begin(), group.end(), [&](std::int64_t other) {
        return other == rank || HasSameEnd(by_end.at(other), call);
      });
      // A rank in a call of another group may wait there.
      if (is_of_all)
        own.push_back(call);
      else
        part.compiles.push_back({rank, call.from_ns, call.to_ns});
    }
  }
  return part;
}

}  // namespace tlparse
