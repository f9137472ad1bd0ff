#include "facts/collectives/rank_states.h"

#include <optional>

namespace tlparse {

SpansByRank AwaitedTimes(const RankStates& states, const std::set<std::int64_t>& together) {
  SpansByRank awaited;
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
          waiting += waits ? 1 : -1;
          waiting_beside += is_together[index] ? 0 : waits ? 1 : -1;
          free_sum += waits ? -index : index;
        }
        if (is_together[index] && is_elsewhere[index] != now.IsElsewhere())
          elsewhere_together += now.IsElsewhere() ? 1 : -1;
        is_elsewhere[index] = now.IsElsewhere();
      },
      [&](std::int64_t from_ns, std::int64_t to_ns) {
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

}  // namespace tlparse
