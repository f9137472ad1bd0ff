#include "facts/collectives/stragglers.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "facts/collectives/arrivals.h"
#include "facts/collectives/compile_spans.h"
#include "facts/collectives/rank_work.h"
#include "queries/facts/collectives/stragglers.h"

namespace tlparse {
namespace {

std::int64_t Sum(const std::vector<Lag>& lags) {
  std::int64_t sum = 0;
  for (const Lag& one : lags) sum += one.ns;
  return sum;
}

// The sum, with what several delays share counted once: calls that do not wait for each other.
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

// Without the longest: one delay is a compile, or a pause.
std::int64_t SteadySum(const std::vector<Lag>& lags) {
  std::int64_t sum = 0, longest = 0;
  for (const std::int64_t ns : DelaysOf(lags)) {
    sum += ns;
    longest = std::max(longest, ns);
  }
  return sum - longest;
}

// A rank that came last every time may have a clock that is ahead.
void TakeOutClock(std::vector<Lag>& lags) {
  std::int64_t least_ns = INT64_MAX;
  for (const Lag& one : lags) least_ns = std::min(least_ns, one.ns);
  for (Lag& one : lags) one.ns -= least_ns;
}

struct FoundStraggler {
  Straggler straggler;
  std::vector<Lag> lags;       // in descending order
  std::size_t sure_count = 0;  // of the first of them, which no machine that is busy explains
};

// Without what the rank compiled: other findings tell of compiles. Where the ranks were together
// before, a delay is what the rank did longer than each of the others beside compiling: while it was
// slow, they may have compiled what it compiled later.
void TakeOutCompiles(const std::vector<CompileSpan>& compiles, const IssuedJob& job,
                     std::size_t rank, std::vector<Lag>& lags) {
  for (Lag& lag : lags) {
    const std::int64_t to_ns = lag.call->arrived_ns;
    std::int64_t compiled_ns = CompiledIn(compiles, job.ranks[rank].rank, to_ns - lag.ns, to_ns);
    if (lag.since_ns > 0) {
      const auto beside = [&](std::size_t one, std::int64_t ns) {
        return ns - lag.since_ns - CompiledIn(compiles, job.ranks[one].rank, lag.since_ns, ns);
      };
      std::int64_t others_ns = 0;
      for (const RankArrival& other : lag.others)
        others_ns = std::max(others_ns, beside(other.rank, other.ns));
      lag.longer_ns = beside(rank, to_ns) - others_ns;
      compiled_ns = std::min(compiled_ns, lag.ns - lag.longer_ns);
    }
    lag.compiled_ns = std::clamp<std::int64_t>(compiled_ns, 0, lag.ns);
    lag.ns -= lag.compiled_ns;
  }
}

// Without what the rank waited meanwhile in calls of other groups: there it waits for another.
void TakeOutWaits(const OwnWaits& waits, const IssuedGroup& group, std::vector<Lag>& lags) {
  for (Lag& lag : lags) {
    const TimeSpan time{lag.call->arrived_ns - lag.ns, lag.call->arrived_ns};
    std::int64_t waited_ns = 0, until_ns = time.from_ns;
    auto wait = std::partition_point(waits.begin(), waits.end(), [&](const OwnWait& one) {
      return one.longest_to_ns <= time.from_ns;
    });
    for (; wait != waits.end() && wait->time.from_ns < time.to_ns; ++wait) {
      if (wait->group == &group) continue;
      waited_ns += SharedNs({std::max(wait->time.from_ns, until_ns), wait->time.to_ns}, time);
      until_ns = std::max(until_ns, wait->time.to_ns);
    }
    if (waited_ns == 0) continue;
    lag.ns -= std::min(lag.ns, waited_ns);
    lag.since_ns = 0;
  }
}

// Whether the rank came last to three quarters of the calls of one line of the program, which make half of
// its delays, and more often than chance has it in one of 30,000 jobs. Of calls that do not wait for
// each other the first counts.
bool IsNearlyAlwaysLast(const Arrivals& arrivals, std::size_t rank, std::size_t ranks) {
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
    const double share = 1.0 / static_cast<double>(ranks), beyond = own - count * share;
    return 2 * own_ns >= all_ns && 4 * own >= 3 * count && beyond > 0 &&
           beyond * beyond >= 16 * count * share * (1 - share);
  });
}

// Whether no chance made the rank the one that was awaited longest.
bool IsNoChance(const Arrivals& arrivals, std::size_t rank, std::size_t ranks) {
  std::vector<std::int64_t> own_ns, others_ns;
  for (const auto& [one, lags] : arrivals.lags) {
    for (const std::int64_t ns : DelaysOf(lags)) (one == rank ? own_ns : others_ns).push_back(ns);
  }
  return StandOut(own_ns, std::move(others_ns)) || IsNearlyAlwaysLast(arrivals, rank, ranks);
}

// Of delays in descending order: how many make nine tenths of the sum.
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

// How many delays are of one length, if the others add little to them: those of a busy machine are of
// any length. The longest is counted, but as it may be a compile or a pause as well, two must be as long
// as each other beside it, or it as long as the next. A delay is shorter for the others where they
// compiled meanwhile; what the rank did is as long.
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

void SetLongDelays(const std::vector<Lag>& lags, Straggler& straggler) {
  const std::int64_t median_ns = lags[lags.size() / 2].ns;
  const bool are_alike =
      2 * median_ns * static_cast<std::int64_t>(lags.size()) >= straggler.lost_ns &&
      3 * lags[(lags.size() - 1) * 3 / 4].ns >= median_ns;
  straggler.long_count = are_alike ? lags.size() : CountOfLong(lags);
  for (std::size_t i = 0; i < straggler.long_count; ++i) straggler.long_ns += lags[i].ns;
  straggler.long_ns = std::min(straggler.long_ns, straggler.lost_ns);
  straggler.least_ns = lags[straggler.long_count - 1].ns;
  const Lag& middle = lags[straggler.long_count / 2];
  straggler.call = middle.call;
  straggler.median_ns = middle.ns;
}

// From the first collective of any group to the last.
std::int64_t SpanOfJob(const IssuedJob& job) {
  std::int64_t first_ns = INT64_MAX, last_ns = 0;
  for (const IssuedGroup& group : job.groups) {
    for (const std::vector<IssuedCollective>& issued : group.issued) {
      for (const IssuedCollective& one : issued) {
        if (one.arrived_ns > 0) first_ns = std::min(first_ns, one.arrived_ns);
        last_ns = std::max(last_ns, one.arrived_ns);
      }
    }
  }
  return last_ns > first_ns ? last_ns - first_ns : 0;
}

Result<std::optional<FoundStraggler>> StragglerOf(Database& database, const IssuedJob& job,
                                                  const IssuedGroup& group,
                                                  std::int64_t job_span_ns,
                                                  const std::set<std::size_t>& not_always_last,
                                                  const std::map<std::size_t, OwnWaits>& waits,
                                                  bool is_of_barriers) {
  constexpr std::size_t kLeastCount = 2;
  constexpr std::int64_t kShareOfTime = 10, kShareOfSteadyTime = 5, kLeastShareOfTime = 50,
                         kTimesOthers = 3;
  Arrivals arrivals = ArrivalsOf(group, is_of_barriers);
  if (arrivals.count == 0) return std::optional<FoundStraggler>();
  ASSIGN_OR_RETURN(const std::vector<CompileSpan> compiles,
                   CompilesIn(database, job.run_id, arrivals.first_ns, arrivals.last_ns));
  for (auto& [one, lags] : arrivals.lags) {
    if (const auto own = waits.find(one); own != waits.end())
      TakeOutWaits(own->second, group, lags);
    if (job.ranks[one].rank) TakeOutCompiles(compiles, job, one, lags);
    if (arrivals.possible.at(one) == 0 && !not_always_last.contains(one)) TakeOutClock(lags);
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
  if (most_ns == 0 || most_ns < kTimesOthers * next_ns) return std::optional<FoundStraggler>();
  const std::int64_t span_ns = arrivals.last_ns - arrivals.first_ns;
  const std::int64_t compiled_ns = CompiledByAny(compiles, arrivals.last_ns);
  const bool is_long = kShareOfTime * most_ns >= span_ns;
  const bool is_long_beside_compiles = kLeastShareOfTime * most_ns >= span_ns &&
                                       kShareOfSteadyTime * most_ns >= span_ns - compiled_ns;
  const bool is_long_in_job = kLeastShareOfTime * most_ns >= job_span_ns;
  if (!is_long_in_job || (!is_long && !is_long_beside_compiles))
    return std::optional<FoundStraggler>();
  std::vector<Lag> lags = arrivals.lags.at(rank);
  if (lags.size() < kLeastCount || 2 * arrivals.impossible.at(rank) > lags.size())
    return std::optional<FoundStraggler>();
  Straggler straggler{.rank = rank,
                      .group = &group,
                      .last_count = lags.size(),
                      .count = arrivals.count,
                      .has_barriers = arrivals.has_barriers && !is_of_barriers,
                      .is_of_barriers = is_of_barriers,
                      .lost_ns = LostNs(lags),
                      .span_ns = span_ns,
                      .job_compiled_ns = std::min(compiled_ns, span_ns)};
  straggler.has_shared = straggler.lost_ns < Sum(lags);
  std::int64_t issued_later_ns = 0;
  for (const Lag& one : lags) {
    straggler.compiled_ns += one.compiled_ns;
    issued_later_ns += one.IssuedLaterNs();
  }
  straggler.is_of_device = 2 * issued_later_ns < Sum(lags);
  std::sort(lags.begin(), lags.end(), [](const Lag& a, const Lag& b) { return a.ns > b.ns; });
  const std::size_t sure_count = is_long ? lags.size() : CountOfSteady(lags);
  const bool is_chance =
      sure_count > kLeastCount && !IsNoChance(arrivals, rank, group.ranks.size());
  if (sure_count < kLeastCount || is_chance) return std::optional<FoundStraggler>();
  SetLongDelays(lags, straggler);
  straggler.is_at_least = arrivals.possible.at(rank) == 0 && !not_always_last.contains(rank);
  for (const std::size_t one : group.ranks) {
    if (one != rank) straggler.waiting.push_back(one);
  }
  return std::optional(FoundStraggler{std::move(straggler), std::move(lags), sure_count});
}

using TimesByName = std::map<std::string, std::int64_t>;

Result<TimesByName> AnnotatedTimes(PreparedQuery<AnnotationInTime>& annotations,
                                   const IssuedJob& job, std::size_t rank, std::int64_t from_ns,
                                   std::int64_t to_ns) {
  TimesByName times_ns;
  const std::optional<std::int64_t>& number = job.ranks[rank].rank;
  if (!number || from_ns >= to_ns) return times_ns;
  FOR_EACH_ROW(
      const AnnotationInTime& row,
      annotations.Run({.run_id = job.run_id, .rank = *number, .from_ns = from_ns, .to_ns = to_ns}))
    times_ns[std::string(row.name)] += row.shared_ns;
  return times_ns;
}

// What the annotations of its profile say of the times in which the others waited; where compiles
// are in between, of all it did since the ranks were together, beyond what the others did of it. What
// calls share counts once. Annotations are of the CPU, and so are the times.
Result<void> SetActivity(Database& database, const IssuedJob& job, FoundStraggler& found) {
  Straggler& straggler = found.straggler;
  std::vector<Lag> lags = found.lags;
  std::sort(lags.begin(), lags.end(),
            [](const Lag& a, const Lag& b) { return a.call->arrived_ns < b.call->arrived_ns; });
  std::int64_t end_ns = 0;  // of the delay before
  ASSIGN_OR_RETURN(auto annotations, PreparedQuery<AnnotationInTime>::Make(database));
  TimesByName times_ns;
  const std::optional<std::int64_t>& number = job.ranks[straggler.rank].rank;
  if (!number || straggler.is_of_device) return {};
  ASSIGN_OR_RETURN(const FirstRow<ProfiledTime> profiled,
                   First(Query<ProfiledTime>(database, {.run_id = job.run_id, .rank = *number})));
  for (const Lag& lag : lags) {
    const std::int64_t to_ns = lag.call->start_ns;
    const std::int64_t least_ns = std::exchange(end_ns, to_ns);
    if (to_ns - lag.ns < profiled->start_ns || to_ns > profiled->end_ns) continue;
    straggler.profiled_ns += to_ns - std::max(least_ns, to_ns - lag.ns);
    const bool has_compiles = lag.compiled_ns > 0 && lag.since_ns > 0;
    ASSIGN_OR_RETURN(
        TimesByName own_ns,
        AnnotatedTimes(annotations, job, straggler.rank,
                       std::max(least_ns, has_compiles ? lag.since_ns : to_ns - lag.whole_ns),
                       to_ns));
    TimesByName others_ns;
    for (const RankArrival& other : lag.others) {
      if (!has_compiles) break;
      ASSIGN_OR_RETURN(const TimesByName of_other,
                       AnnotatedTimes(annotations, job, other.rank,
                                      std::max(least_ns, lag.since_ns), other.issued_ns));
      for (const auto& [name, ns] : of_other) others_ns[name] = std::max(others_ns[name], ns);
    }
    for (const auto& [name, ns] : own_ns)
      times_ns[name] += std::max<std::int64_t>(0, ns - others_ns[name]);
  }
  for (const auto& [name, ns] : times_ns) {
    if (2 * ns < straggler.profiled_ns || ns <= straggler.activity_ns) continue;
    straggler.activity = name;
    straggler.activity_ns = std::min(ns, straggler.profiled_ns);
  }
  return {};
}

// Whether delays of one length are half of the time in which no rank compiled, or more.
bool AreMostOfTime(const FoundStraggler& found) {
  const Straggler& straggler = found.straggler;
  return AreAlike(found.lags[found.sure_count - 1].ns, found.lags.front().ns) &&
         2 * straggler.lost_ns >= straggler.span_ns - straggler.job_compiled_ns;
}

}  // namespace

Result<std::optional<Straggler>> FindStraggler(Database& database, const IssuedJob& job,
                                               bool is_of_barriers) {
  std::optional<FoundStraggler> worst;
  const std::int64_t job_span_ns = SpanOfJob(job);
  const std::set<std::size_t> not_always_last = RanksNotAlwaysLast(job);
  const std::map<std::size_t, OwnWaits> waits =
      job.groups.size() > 1 ? WaitsOfRanks(job) : std::map<std::size_t, OwnWaits>();
  for (const IssuedGroup& group : job.groups) {
    ASSIGN_OR_RETURN(
        std::optional<FoundStraggler> one,
        StragglerOf(database, job, group, job_span_ns, not_always_last, waits, is_of_barriers));
    if (one && (!worst || one->straggler.lost_ns > worst->straggler.lost_ns))
      worst = std::move(one);
  }
  if (!worst) return std::optional<Straggler>();
  RETURN_IF_ERROR(SetActivity(database, job, *worst));
  // Without a profile that says what the rank did.
  constexpr std::size_t kEnoughCount = 3;
  if (worst->sure_count < kEnoughCount && worst->straggler.activity.empty() &&
      !AreMostOfTime(*worst))
    return std::optional<Straggler>();
  return std::optional(std::move(worst->straggler));
}

}  // namespace tlparse
