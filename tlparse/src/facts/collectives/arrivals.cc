#include "facts/collectives/arrivals.h"

#include <algorithm>
#include <utility>

#include "facts/collectives/issued_group.h"
#include "facts/collectives/issued_lines.h"

namespace tlparse {
namespace {

struct RankCall {
  std::size_t rank = 0;
  const IssuedCollective* call = nullptr;
  const IssuedCollective* next = nullptr;  // of this rank in the group; nullptr: none
};
using RankCalls = std::vector<RankCall>;

// A broadcast does not make every rank wait: one waited if its next call came after the last rank.
bool AreWaitedFor(const RankCalls& calls) {
  const IssuedCollective& last = *calls.back().call;
  return NeedsAllRanks(last.plain_op) ||
         std::any_of(calls.begin(), calls.end() - 1, [&](const RankCall& one) {
           return one.next != nullptr && one.next->arrived_ns >= last.arrived_ns;
         });
}

void Take(RankCalls calls, Arrivals& arrivals) {
  const std::int64_t together_ns = std::exchange(arrivals.together_ns, 0);
  const bool is_one_call = std::all_of(calls.begin(), calls.end(), [&](const RankCall& one) {
    return one.call->arrived_ns > 0 && calls.front().call->MayBeCallOf(*one.call);
  });
  if (calls.size() < 2 || !is_one_call) return;
  const bool is_barrier = calls.front().call->plain_op.starts_with("barrier");
  arrivals.has_barriers |= is_barrier;
  if (is_barrier != arrivals.is_of_barriers) return;
  std::sort(calls.begin(), calls.end(), [](const RankCall& a, const RankCall& b) {
    return a.call->arrived_ns < b.call->arrived_ns;
  });
  if (!AreWaitedFor(calls)) {
    ++arrivals.unawaited_count;
    return;
  }
  bool has_one = false;
  std::erase_if(calls, [&](const RankCall& one) {
    return arrivals.together.contains(one.rank) && std::exchange(has_one, true);
  });
  const auto& [of_rank, last, next] = calls.back();
  const std::size_t rank =
      arrivals.together.contains(of_rank) ? *arrivals.together.begin() : of_rank;
  ++arrivals.count;
  arrivals.first_ns = std::min(arrivals.first_ns, calls.front().call->arrived_ns);
  // A device that is behind its CPU ends them later.
  arrivals.last_ns = std::max({arrivals.last_ns, last->arrived_ns, last->end_ns});
  const std::int64_t lag_ns = last->arrived_ns - calls[calls.size() - 2].call->arrived_ns;
  Lag& lag = arrivals.lags[rank].emplace_back(Lag{
      .call = last, .rank = of_rank, .whole_ns = lag_ns, .ns = lag_ns, .since_ns = together_ns});
  for (auto one = calls.begin(); one != calls.end() - 1; ++one)
    lag.others.push_back({one->rank, one->call->arrived_ns, one->call->start_ns});
  if (NeedsAllRanks(last->plain_op)) arrivals.together_ns = last->arrived_ns;
  arrivals.possible[rank] += std::any_of(
      calls.begin(), calls.end() - 1,
      [last = last](const RankCall& one) { return one.call->end_ns >= last->arrived_ns; });
  arrivals.impossible[rank] +=
      std::any_of(calls.begin(), calls.end() - 1, [last = last](const RankCall& one) {
        return one.call->end_ns > 0 && one.call->end_ns < last->arrived_ns;
      });
}

}  // namespace

std::int64_t Lag::IssuedLaterNs() const {
  std::int64_t others_ns = 0;
  for (const RankArrival& other : others) others_ns = std::max(others_ns, other.issued_ns);
  return std::clamp<std::int64_t>(call->start_ns - others_ns, 0, whole_ns);
}

void SetArrivals(IssuedGroup& group) {
  std::set<std::int64_t> without_kernel;
  for (const std::vector<IssuedCollective>& issued : group.issued) {
    for (const IssuedCollective& one : issued)
      if (one.device_start_ns == 0) without_kernel.insert(one.sequence);
  }
  for (std::vector<IssuedCollective>& issued : group.issued) {
    for (IssuedCollective& one : issued)
      one.arrived_ns = without_kernel.contains(one.sequence) ? one.start_ns : one.device_start_ns;
  }
}

namespace {

std::map<std::int64_t, RankCalls> CallsByNumber(const IssuedGroup& group) {
  std::map<std::int64_t, RankCalls> by_sequence;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    const std::vector<IssuedCollective>& issued = group.issued[i];
    for (std::size_t j = 0; j < issued.size(); ++j) {
      RankCalls& calls = by_sequence[issued[j].sequence];
      if (calls.empty() || calls.back().rank != group.ranks[i])
        calls.push_back({.rank = group.ranks[i],
                         .call = &issued[j],
                         .next = j + 1 < issued.size() ? &issued[j + 1] : nullptr});
    }
  }
  return by_sequence;
}

}  // namespace

Arrivals ArrivalsOf(const IssuedGroup& group, bool is_of_barriers, std::set<std::size_t> together) {
  Arrivals arrivals{.together = std::move(together), .is_of_barriers = is_of_barriers};
  for (auto& [sequence, calls] : CallsByNumber(group)) {
    if (calls.size() == group.ranks.size())
      Take(std::move(calls), arrivals);
    else
      arrivals.together_ns = 0;
  }
  return arrivals;
}

std::set<std::size_t> LateTogether(const IssuedGroup& group) {
  std::map<std::set<std::size_t>, std::int64_t> late_ns;
  for (auto& [sequence, calls] : CallsByNumber(group)) {
    if (calls.size() != group.ranks.size()) continue;
    std::sort(calls.begin(), calls.end(), [](const RankCall& a, const RankCall& b) {
      return a.call->arrived_ns < b.call->arrived_ns;
    });
    std::size_t first = 0;
    std::int64_t longest_ns = 0;
    for (std::size_t i = 1; i < calls.size(); ++i) {
      const std::int64_t ns = calls[i].call->arrived_ns - calls[i - 1].call->arrived_ns;
      if (ns <= longest_ns) continue;
      longest_ns = ns;
      first = i;
    }
    if (first == 0 || 2 * first < calls.size()) continue;
    std::set<std::size_t> late;
    for (std::size_t i = first; i < calls.size(); ++i) late.insert(calls[i].rank);
    late_ns[late] += longest_ns;
  }
  const auto most =
      std::max_element(late_ns.begin(), late_ns.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == late_ns.end() || most->first.size() < 2) return {};
  const bool is_chance = std::any_of(late_ns.begin(), late_ns.end(), [&](const auto& one) {
    return 3 * one.second > most->second &&
           std::none_of(one.first.begin(), one.first.end(),
                        [&](std::size_t rank) { return most->first.contains(rank); });
  });
  return is_chance ? std::set<std::size_t>() : most->first;
}

std::set<std::size_t> RanksNotAlwaysLast(const IssuedJob& job) {
  std::set<std::size_t> ranks;
  for (const IssuedGroup& group : job.groups) {
    for (auto& [sequence, found] : CallsByNumber(group)) {
      RankCalls calls = std::move(found);
      // Ranks may call it at several lines, as one that prepares while the others wait in a barrier.
      const bool is_one_op = std::all_of(calls.begin(), calls.end(), [&](const RankCall& one) {
        return one.call->arrived_ns > 0 && one.call->plain_op == calls.front().call->plain_op;
      });
      if (calls.size() != group.ranks.size() || calls.size() < 2 || !is_one_op) continue;
      std::sort(calls.begin(), calls.end(), [](const RankCall& a, const RankCall& b) {
        return a.call->arrived_ns < b.call->arrived_ns;
      });
      if (!AreWaitedFor(calls)) continue;
      for (auto one = calls.begin(); one != calls.end() - 1; ++one) ranks.insert(one->rank);
    }
  }
  return ranks;
}

namespace {

// From a time on: how long until the next call of a rank; 0: it has none.
std::int64_t UntilNext(const std::vector<std::int64_t>& times_ns, std::int64_t from_ns) {
  const auto next = std::upper_bound(times_ns.begin(), times_ns.end(), from_ns);
  return next == times_ns.end() ? 0 : *next - from_ns;
}

void SetLongest(OwnWaits& waits) {
  std::sort(waits.begin(), waits.end(),
            [](const OwnWait& a, const OwnWait& b) { return a.time.from_ns < b.time.from_ns; });
  std::int64_t longest_ns = 0;
  for (OwnWait& one : waits) one.longest_to_ns = longest_ns = std::max(longest_ns, one.time.to_ns);
}

// Whether half of a time or more, from its begin on, is spent in a call of another group that had not all
// ranks.
bool IsInOther(const OwnWaits& pending, const IssuedGroup& group, const TimeSpan& time) {
  const std::int64_t half_ns = time.from_ns + time.Length() / 2;
  auto one = std::partition_point(pending.begin(), pending.end(), [&](const OwnWait& wait) {
    return wait.longest_to_ns < half_ns;
  });
  for (; one != pending.end() && one->time.from_ns <= time.from_ns; ++one) {
    if (one->group != &group && one->time.to_ns >= half_ns) return true;
  }
  return false;
}

}  // namespace

std::map<std::size_t, OwnWaits> WaitsOfRanks(const IssuedJob& job) {
  struct WholeCall {
    const IssuedGroup* group = nullptr;
    RankCalls calls;
    std::int64_t last_ns = 0;
  };
  std::vector<WholeCall> all;
  std::map<std::size_t, std::vector<std::int64_t>> times_ns;
  std::map<std::size_t, OwnWaits> pending, waits;
  for (const IssuedGroup& group : job.groups) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      for (const IssuedCollective& one : group.issued[i])
        times_ns[group.ranks[i]].push_back(one.arrived_ns);
    }
    for (auto& [sequence, calls] : CallsByNumber(group)) {
      if (calls.size() != group.ranks.size() || !NeedsAllRanks(calls.front().call->plain_op))
        continue;
      std::int64_t last_ns = 0;
      for (const RankCall& one : calls) last_ns = std::max(last_ns, one.call->arrived_ns);
      for (const RankCall& one : calls) {
        if (one.call->arrived_ns > 0 && one.call->arrived_ns < last_ns)
          pending[one.rank].push_back({{one.call->arrived_ns, last_ns}, &group});
      }
      all.push_back({&group, std::move(calls), last_ns});
    }
  }
  for (auto& [rank, own] : times_ns) std::sort(own.begin(), own.end());
  for (auto& [rank, own] : pending) SetLongest(own);
  for (const auto& [group, calls, last_ns] : all) {
    // The call itself takes what the others need for it, until their next one.
    std::vector<std::int64_t> until_ns;
    std::int64_t most_ns = 0, next_ns = 0;
    for (const RankCall& one : calls) {
      std::int64_t own_ns = UntilNext(times_ns[one.rank], last_ns);
      if (IsInOther(pending[one.rank], *group, {last_ns, last_ns + own_ns})) own_ns = 0;
      next_ns = std::max(next_ns, std::min(own_ns, most_ns));
      most_ns = std::max(most_ns, own_ns);
      until_ns.push_back(own_ns);
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::int64_t from_ns = calls[i].call->arrived_ns,
                         to_ns = last_ns + (until_ns[i] == most_ns ? next_ns : until_ns[i]);
      if (from_ns > 0 && from_ns < to_ns) waits[calls[i].rank].push_back({{from_ns, to_ns}, group});
    }
  }
  for (auto& [rank, own] : waits) SetLongest(own);
  return waits;
}

bool StandOut(const std::vector<std::int64_t>& own_ns, std::vector<std::int64_t> others_ns) {
  constexpr std::int64_t kTimeSliceNs = 2'000'000;  // of a busy processor
  std::sort(others_ns.rbegin(), others_ns.rend());
  const std::int64_t usual_ns = std::max(others_ns.size() > 1 ? others_ns[1] : 0, kTimeSliceNs);
  const auto are_enough = [&](std::size_t least_count, std::int64_t times_usual) {
    std::int64_t long_ns = 0, sum_ns = 0;
    std::size_t count = 0;
    for (const std::int64_t ns : own_ns) {
      sum_ns += ns;
      if (ns <= times_usual * usual_ns) continue;
      long_ns += ns;
      ++count;
    }
    return count >= least_count && 2 * long_ns >= sum_ns;
  };
  return are_enough(3, 3) || are_enough(2, 10);
}

}  // namespace tlparse
