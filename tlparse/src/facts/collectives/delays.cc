#include "facts/collectives/delays.h"

#include <algorithm>
#include <map>
#include <string>

namespace tlparse {

namespace {

// The delays, those of calls that do not wait for each other as one: the longest of them.
std::vector<std::int64_t> DelaysOf(const std::vector<Lag>& lags) {
  std::vector<const Lag*> in_order;
  for (const Lag& one : lags) in_order.push_back(&one);
  std::sort(in_order.begin(), in_order.end(),
            [](const Lag* a, const Lag* b) { return a->call->arrived_ns < b->call->arrived_ns; });
  std::vector<std::int64_t> delays_ns;
  std::int64_t until_ns = INT64_MIN;
  for (const Lag* const one : in_order) {
    const std::int64_t to_ns = one->call->arrived_ns;
    if (to_ns - one->whole_ns < until_ns)
      delays_ns.back() = std::max(delays_ns.back(), one->ns);
    else
      delays_ns.push_back(one->ns);
    until_ns = to_ns;
  }
  return delays_ns;
}

// Whether the rank came last to three quarters of the calls of one line of the program, which make half of
// its delays, and more often than chance has it in one of 30,000 jobs. Of calls that do not wait for
// each other the first counts. `share`: how often chance makes it the last.
bool IsNearlyAlwaysLast(const Arrivals& arrivals, std::size_t rank, double share) {
  struct Call {
    TimeSpan time;
    std::int64_t own_ns = 0;
  };
  std::map<std::string, std::vector<Call>> by_line;
  std::int64_t all_ns = 0;
  for (const auto& [one, lags] : arrivals.lags) {
    for (const Lag& lag : lags) {
      const std::int64_t own_ns = one == rank ? lag.ns : 0, to_ns = lag.call->arrived_ns;
      by_line[lag.call->plain_op + lag.call->Place()].push_back(
          {{to_ns - lag.whole_ns, to_ns}, own_ns});
      all_ns += own_ns;
    }
  }
  return std::any_of(by_line.begin(), by_line.end(), [&](auto& line) {
    std::vector<Call>& calls = line.second;
    std::sort(calls.begin(), calls.end(),
              [](const Call& a, const Call& b) { return a.time.to_ns < b.time.to_ns; });
    double count = 0, own = 0;
    std::int64_t until_ns = INT64_MIN, own_ns = 0;
    for (const Call& one : calls) {
      own_ns += one.own_ns;
      if (one.time.from_ns >= until_ns) {
        count += 1;
        own += one.own_ns > 0 ? 1 : 0;
      }
      until_ns = std::max(until_ns, one.time.to_ns);
    }
    const double beyond = own - count * share;
    return 2 * own_ns >= all_ns && 4 * own >= 3 * count && beyond > 0 &&
           beyond * beyond >= 16 * count * share * (1 - share);
  });
}

}  // namespace

std::int64_t Sum(const std::vector<Lag>& lags) {
  std::int64_t sum = 0;
  for (const Lag& one : lags) sum += one.ns;
  return sum;
}

std::int64_t LostNs(std::vector<Lag> lags) {
  std::sort(lags.begin(), lags.end(),
            [](const Lag& a, const Lag& b) { return a.call->arrived_ns < b.call->arrived_ns; });
  std::int64_t covered_ns = 0, compiled_ns = 0, longest_ns = 0, end_ns = INT64_MIN;
  for (const Lag& one : lags) {
    const std::int64_t to_ns = one.call->arrived_ns;
    covered_ns += to_ns - std::min(to_ns, std::max(end_ns, to_ns - one.ns - one.compiled_ns));
    end_ns = to_ns;
    compiled_ns += one.compiled_ns;
    longest_ns = std::max(longest_ns, one.ns);
  }
  return std::min(Sum(lags), std::max(longest_ns, covered_ns - compiled_ns));
}

std::int64_t SteadySum(const std::vector<Lag>& lags) {
  std::int64_t sum = 0, longest = 0;
  for (const std::int64_t ns : DelaysOf(lags)) {
    sum += ns;
    longest = std::max(longest, ns);
  }
  return sum - longest;
}

void TakeOutClock(std::vector<Lag>& lags) {
  std::int64_t least_ns = INT64_MAX;
  for (const Lag& one : lags) least_ns = std::min(least_ns, one.ns);
  for (Lag& one : lags) one.ns -= least_ns;
}

bool IsNoChance(const Arrivals& arrivals, std::size_t rank, double share) {
  std::vector<std::int64_t> own_ns, others_ns;
  for (const auto& [one, lags] : arrivals.lags) {
    for (const std::int64_t ns : DelaysOf(lags)) (one == rank ? own_ns : others_ns).push_back(ns);
  }
  return StandOut(own_ns, std::move(others_ns)) || IsNearlyAlwaysLast(arrivals, rank, share);
}

namespace {

// Of that many calls a rank comes last to `last` or more by chance.
double ChanceOfLast(std::size_t last, std::size_t count, double share) {
  double chance = 0, one = 1;  // one: the chance of exactly i of them
  for (std::size_t i = 0; i < count; ++i) one *= 1 - share;
  for (std::size_t i = 0; i <= count; ++i) {
    if (i >= last) chance += one;
    one *= static_cast<double>(count - i) / static_cast<double>(i + 1) * share / (1 - share);
  }
  return chance;
}

}  // namespace

bool MayBeSpread(const Arrivals& arrivals, const std::set<std::size_t>& ranks, std::size_t all,
                 const IssuedJob& job, const std::vector<CompileSpan>& compiles) {
  constexpr double kMostChance = 0.01;
  constexpr std::size_t kMostCalls = 1000;  // of more the numbers say enough
  std::vector<std::int64_t> own_ns, others_ns;
  std::size_t count = 0, last = 0;
  for (const auto& [rank, lags] : arrivals.lags) {
    const std::vector<std::int64_t> delays_ns = DelaysOf(lags);
    count += delays_ns.size();
    if (ranks.contains(rank)) last += delays_ns.size();
    if (ranks.contains(rank)) own_ns.insert(own_ns.end(), delays_ns.begin(), delays_ns.end());
    for (const Lag& lag : lags) {
      const auto add = [&](std::size_t one, std::int64_t ns) {
        if (lag.since_ns > 0 && !ranks.contains(one))
          others_ns.push_back(ns - lag.since_ns -
                              CompiledIn(compiles, job.ranks[one].rank, lag.since_ns, ns));
      };
      add(rank, lag.call->arrived_ns);
      for (const RankArrival& other : lag.others) add(other.rank, other.ns);
    }
  }
  if (count > kMostCalls || others_ns.size() < 2 || own_ns.empty()) return false;
  const double share = static_cast<double>(ranks.size()) / static_cast<double>(all);
  const double sets = 1 / share;  // that might have been it
  if (sets * ChanceOfLast(last, count, share) <= kMostChance) return false;
  std::sort(others_ns.begin(), others_ns.end());
  std::sort(own_ns.begin(), own_ns.end());
  // One pause of theirs among many times says little.
  constexpr std::size_t kMany = 10;
  const std::size_t longest = others_ns.size() - (others_ns.size() >= kMany ? 2 : 1);
  return own_ns[own_ns.size() / 2] < 2 * (others_ns[longest] - others_ns.front());
}

std::size_t CountOfLong(const std::vector<Lag>& lags) {
  const std::int64_t lost_ns = Sum(lags);
  std::size_t count = 0;
  for (std::int64_t long_ns = 0; count < lags.size() && 10 * long_ns < 9 * lost_ns; ++count)
    long_ns += lags[count].ns;
  return count;
}

bool AreAlike(std::int64_t shorter_ns, std::int64_t longer_ns) {
  return 3 * shorter_ns >= 2 * longer_ns;
}

std::size_t CountOfSteady(const std::vector<Lag>& lags) {
  std::vector<std::int64_t> delays_ns;
  for (const Lag& one : lags) delays_ns.push_back(std::max(one.ns, one.longer_ns));
  std::sort(delays_ns.rbegin(), delays_ns.rend());
  std::size_t count = 0;
  std::int64_t alike_ns = 0, rest_ns = 0;
  for (std::size_t i = 1; i < delays_ns.size(); ++i) {
    rest_ns += delays_ns[i];
    if (!AreAlike(delays_ns[i], delays_ns[1])) continue;
    alike_ns += delays_ns[i];
    ++count;
  }
  const bool is_known = count >= 2 || (count == 1 && AreAlike(delays_ns[1], delays_ns.front()));
  return is_known && 4 * alike_ns >= 3 * rest_ns ? count + 1 : 0;
}

}  // namespace tlparse
