#include "facts/collectives/stragglers.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "facts/collectives/issued_group.h"
#include "facts/collectives/issued_lines.h"
#include "queries/facts/collectives/stragglers.h"

namespace tlparse {
namespace {

struct Lag {
  const IssuedCollective* call = nullptr;
  std::int64_t ns = 0;
};

// The collectives of a group that several ranks issued.
struct Arrivals {
  std::map<std::size_t, std::vector<Lag>> lags;   // by rank: where it came last
  std::map<std::size_t, std::size_t> possible;    // by rank: others had not ended before it came
  std::map<std::size_t, std::size_t> impossible;  // by rank: others had ended before it came
  std::size_t count = 0;
  std::vector<std::int64_t> starts_ns;  // of each, by the first that issued it
  std::int64_t last_ns = 0;

  std::int64_t SpanNs() const {
    return last_ns - *std::min_element(starts_ns.begin(), starts_ns.end());
  }
  // Without the longest time from one to the next, in which the ranks may have compiled.
  std::int64_t SteadySpanNs() const {
    std::vector<std::int64_t> sorted = starts_ns;
    std::sort(sorted.begin(), sorted.end());
    std::int64_t longest = 0;
    for (std::size_t i = 1; i < sorted.size(); ++i)
      longest = std::max(longest, sorted[i] - sorted[i - 1]);
    return SpanNs() - longest;
  }
};

using RankCalls = std::vector<std::pair<std::size_t, const IssuedCollective*>>;  // rank, call

void Take(RankCalls calls, Arrivals& arrivals) {
  const bool is_one_call = std::all_of(calls.begin(), calls.end(), [&](const auto& one) {
    return one.second->start_ns > 0 && calls.front().second->MayBeCallOf(*one.second);
  });
  if (calls.size() < 2 || !is_one_call || !NeedsAllRanks(calls.front().second->plain_op) ||
      calls.front().second->plain_op.starts_with("barrier"))
    return;
  std::sort(calls.begin(), calls.end(),
            [](const auto& a, const auto& b) { return a.second->start_ns < b.second->start_ns; });
  const auto& [rank, last] = calls.back();
  ++arrivals.count;
  arrivals.starts_ns.push_back(calls.front().second->start_ns);
  arrivals.last_ns = std::max(arrivals.last_ns, last->start_ns);
  arrivals.lags[rank].push_back({last, last->start_ns - calls[calls.size() - 2].second->start_ns});
  arrivals.possible[rank] +=
      std::any_of(calls.begin(), calls.end() - 1,
                  [last = last](const auto& one) { return one.second->end_ns >= last->start_ns; });
  arrivals.impossible[rank] +=
      std::any_of(calls.begin(), calls.end() - 1, [last = last](const auto& one) {
        return one.second->end_ns > 0 && one.second->end_ns < last->start_ns;
      });
}

Arrivals ArrivalsOf(const IssuedGroup& group) {
  std::map<std::int64_t, RankCalls> by_sequence;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    for (const IssuedCollective& one : group.issued[i]) {
      RankCalls& calls = by_sequence[one.sequence];
      if (calls.empty() || calls.back().first != group.ranks[i])
        calls.emplace_back(group.ranks[i], &one);
    }
  }
  Arrivals arrivals;
  for (auto& [sequence, calls] : by_sequence) {
    if (calls.size() == group.ranks.size()) Take(std::move(calls), arrivals);
  }
  return arrivals;
}

std::int64_t Sum(const std::vector<Lag>& lags) {
  std::int64_t sum = 0;
  for (const Lag& one : lags) sum += one.ns;
  return sum;
}

// Without the longest: one delay is a compile, or a pause.
std::int64_t SteadySum(const std::vector<Lag>& lags) {
  std::int64_t longest = 0;
  for (const Lag& one : lags) longest = std::max(longest, one.ns);
  return Sum(lags) - longest;
}

// A rank that came last every time may have a clock that is ahead.
void TakeOutClock(std::vector<Lag>& lags) {
  std::int64_t least_ns = INT64_MAX;
  for (const Lag& one : lags) least_ns = std::min(least_ns, one.ns);
  for (Lag& one : lags) one.ns -= least_ns;
}

std::optional<Straggler> StragglerOf(const IssuedGroup& group) {
  constexpr std::size_t kLeastCount = 3;
  constexpr std::int64_t kShareOfTime = 10, kShareOfSteadyTime = 5, kLeastShareOfTime = 20,
                         kTimesOthers = 3;
  Arrivals arrivals = ArrivalsOf(group);
  for (auto& [one, lags] : arrivals.lags) {
    if (lags.size() == arrivals.count && arrivals.possible.at(one) == 0) TakeOutClock(lags);
  }
  std::size_t rank = 0;
  std::int64_t most_ns = 0, next_ns = 0;
  for (const auto& [one, lags] : arrivals.lags) {
    const std::int64_t own_ns = SteadySum(lags);
    if (own_ns <= most_ns) {
      next_ns = std::max(next_ns, own_ns);
      continue;
    }
    next_ns = most_ns;
    most_ns = own_ns;
    rank = one;
  }
  if (most_ns == 0 || most_ns < kTimesOthers * next_ns) return std::nullopt;
  const std::int64_t span_ns = arrivals.SpanNs();
  const bool is_long = kShareOfTime * most_ns >= span_ns ||
                       (kLeastShareOfTime * most_ns >= span_ns &&
                        kShareOfSteadyTime * most_ns >= arrivals.SteadySpanNs());
  if (!is_long) return std::nullopt;
  std::vector<Lag> lags = arrivals.lags.at(rank);
  if (lags.size() < kLeastCount || 2 * arrivals.impossible.at(rank) > lags.size())
    return std::nullopt;
  const auto middle = lags.begin() + static_cast<std::ptrdiff_t>((lags.size() - 1) / 2);
  Straggler straggler{.rank = rank,
                      .group = &group,
                      .last_count = lags.size(),
                      .count = arrivals.count,
                      .lost_ns = Sum(lags),
                      .span_ns = span_ns};
  std::nth_element(lags.begin(), middle, lags.end(),
                   [](const Lag& a, const Lag& b) { return a.ns < b.ns; });
  straggler.call = middle->call;
  straggler.median_ns = middle->ns;
  straggler.is_at_least = lags.size() == arrivals.count && arrivals.possible.at(rank) == 0;
  for (const std::size_t one : group.ranks) {
    if (one != rank) straggler.waiting.push_back(one);
  }
  return straggler;
}

// What the annotations of its profile say of the times in which the others waited.
Result<void> SetActivity(Database& database, const IssuedJob& job, Straggler& straggler) {
  const std::optional<std::int64_t>& rank = job.ranks[straggler.rank].rank;
  if (!rank) return {};
  const Arrivals arrivals = ArrivalsOf(*straggler.group);
  ASSIGN_OR_RETURN(auto annotations, PreparedQuery<AnnotationInTime>::Make(database));
  std::map<std::string, std::int64_t> times_ns;
  for (const Lag& lag : arrivals.lags.at(straggler.rank)) {
    FOR_EACH_ROW(const AnnotationInTime& row,
                 annotations.Run({.run_id = job.run_id,
                                  .rank = *rank,
                                  .from_ns = lag.call->start_ns - lag.ns,
                                  .to_ns = lag.call->start_ns}))
      times_ns[std::string(row.name)] += row.shared_ns;
  }
  for (const auto& [name, ns] : times_ns) {
    if (2 * ns < straggler.lost_ns || ns <= straggler.activity_ns) continue;
    straggler.activity = name;
    straggler.activity_ns = ns;
  }
  return {};
}

}  // namespace

Result<std::optional<Straggler>> FindStraggler(Database& database, const IssuedJob& job) {
  std::optional<Straggler> worst;
  for (const IssuedGroup& group : job.groups) {
    std::optional<Straggler> one = StragglerOf(group);
    if (one && (!worst || one->lost_ns > worst->lost_ns)) worst = std::move(one);
  }
  if (worst) RETURN_IF_ERROR(SetActivity(database, job, *worst));
  return worst;
}

}  // namespace tlparse
