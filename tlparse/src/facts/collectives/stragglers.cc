#include "facts/collectives/stragglers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "facts/collectives/arrivals.h"
#include "facts/collectives/compile_spans.h"
#include "facts/collectives/delays.h"
#include "facts/collectives/rank_work.h"
#include "queries/facts/collectives/stragglers.h"

namespace tlparse {
namespace {

struct FoundStraggler {
  Straggler straggler;
  std::vector<Lag> lags;       // in descending order
  std::size_t sure_count = 0;  // of the first of them, which no machine that is busy explains
};

// Without what the rank compiled: other findings tell of compiles. Where the ranks were together
// before, a delay is what the rank did longer than each of the others beside compiling: while it was
// slow, they may have compiled what it compiled later.
void TakeOutCompiles(const std::vector<CompileSpan>& compiles, const IssuedJob& job,
                     std::vector<Lag>& lags) {
  for (Lag& lag : lags) {
    const std::size_t rank = lag.rank;
    if (!job.ranks[rank].rank) continue;
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
void TakeOutWaits(const std::map<std::size_t, OwnWaits>& waits_of, const IssuedGroup& group,
                  std::vector<Lag>& lags) {
  for (Lag& lag : lags) {
    const auto own = waits_of.find(lag.rank);
    if (own == waits_of.end()) continue;
    const OwnWaits& waits = own->second;
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

// From the last collective before the first compile to that: ranks load what they compile with.
std::int64_t StartUp(const IssuedJob& job, const std::vector<CompileSpan>& compiles,
                     std::int64_t first_ns) {
  if (compiles.empty()) return 0;
  std::int64_t begin_ns = INT64_MAX, before_ns = first_ns;
  for (const CompileSpan& one : compiles) begin_ns = std::min(begin_ns, one.start_ns);
  for (const IssuedGroup& group : job.groups) {
    for (const std::vector<IssuedCollective>& issued : group.issued) {
      for (const IssuedCollective& one : issued) {
        if (one.arrived_ns < begin_ns) before_ns = std::max(before_ns, one.arrived_ns);
      }
    }
  }
  return std::max<std::int64_t>(0, begin_ns - before_ns);
}

Result<std::optional<FoundStraggler>> StragglerOf(
    Database& database, const IssuedJob& job, const IssuedGroup& group, std::int64_t job_span_ns,
    const std::set<std::size_t>& not_always_last, const std::map<std::size_t, OwnWaits>& waits,
    bool is_of_barriers, const std::set<std::size_t>& together) {
  constexpr std::size_t kLeastCount = 2;
  constexpr std::int64_t kShareOfTime = 10, kShareOfSteadyTime = 5, kLeastShareOfTime = 50,
                         kTimesOthers = 3;
  Arrivals arrivals = ArrivalsOf(group, is_of_barriers, together);
  if (arrivals.count == 0) return std::optional<FoundStraggler>();
  ASSIGN_OR_RETURN(const std::vector<CompileSpan> compiles,
                   CompilesIn(database, job.run_id, arrivals.first_ns, arrivals.last_ns));
  for (auto& [one, lags] : arrivals.lags) {
    TakeOutWaits(waits, group, lags);
    TakeOutCompiles(compiles, job, lags);
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
  if (most_ns == 0 || most_ns < kTimesOthers * next_ns ||
      (!together.empty() && !together.contains(rank)))
    return std::optional<FoundStraggler>();
  const std::int64_t span_ns = arrivals.last_ns - arrivals.first_ns;
  const std::int64_t compiled_ns = CompiledByAny(compiles, arrivals.last_ns);
  const std::int64_t steady_ns = span_ns - compiled_ns - StartUp(job, compiles, arrivals.first_ns);
  const bool is_long = kShareOfTime * most_ns >= span_ns;
  const bool is_long_beside_compiles =
      kLeastShareOfTime * most_ns >= span_ns && kShareOfSteadyTime * most_ns >= steady_ns;
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
                      .unawaited_count = arrivals.unawaited_count,
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
  straggler.ranks = {rank};
  if (!together.empty()) straggler.ranks = {together.begin(), together.end()};
  const double share =
      static_cast<double>(straggler.ranks.size()) / static_cast<double>(group.ranks.size());
  const bool is_chance = sure_count > kLeastCount && !IsNoChance(arrivals, rank, share);
  if (sure_count < kLeastCount || is_chance) return std::optional<FoundStraggler>();
  SetLongDelays(lags, straggler);
  const std::set<std::size_t> named(straggler.ranks.begin(), straggler.ranks.end());
  straggler.may_be_spread = MayBeSpread(arrivals, named, group.ranks.size(), job, compiles);
  straggler.is_at_least = arrivals.possible.at(rank) == 0 && !not_always_last.contains(rank);
  std::set_difference(group.ranks.begin(), group.ranks.end(), straggler.ranks.begin(),
                      straggler.ranks.end(), std::back_inserter(straggler.waiting));
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
  std::vector<FoundStraggler> all;
  const std::int64_t job_span_ns = SpanOfJob(job);
  const std::set<std::size_t> not_always_last = RanksNotAlwaysLast(job);
  const std::map<std::size_t, OwnWaits> waits =
      job.groups.size() > 1 ? WaitsOfRanks(job) : std::map<std::size_t, OwnWaits>();
  for (const IssuedGroup& group : job.groups) {
    std::vector<std::set<std::size_t>> sets = {{}};
    if (!is_of_barriers) sets.push_back(LateTogether(group));
    if (sets.back().empty()) sets.resize(1);
    for (const std::set<std::size_t>& together : sets) {
      ASSIGN_OR_RETURN(std::optional<FoundStraggler> one,
                       StragglerOf(database, job, group, job_span_ns, not_always_last, waits,
                                   is_of_barriers, together));
      if (one) all.push_back(std::move(*one));
    }
  }
  if (all.empty()) return std::optional<Straggler>();
  std::stable_sort(all.begin(), all.end(), [](const FoundStraggler& a, const FoundStraggler& b) {
    return a.straggler.lost_ns > b.straggler.lost_ns;
  });
  FoundStraggler& worst = all.front();
  RETURN_IF_ERROR(SetActivity(database, job, worst));
  worst.straggler.may_be_spread &= worst.straggler.activity.empty();
  // Without a profile that says what the rank did.
  constexpr std::size_t kEnoughCount = 3;
  if (worst.sure_count < kEnoughCount && worst.straggler.activity.empty() && !AreMostOfTime(worst))
    return std::optional<Straggler>();
  const auto own = std::find_if(job.groups.begin(), job.groups.end(), [&](const IssuedGroup& one) {
    return one.ranks.size() > 1 && one.ranks == worst.straggler.waiting;
  });
  if (own != job.groups.end()) worst.straggler.without_it = &*own;
  std::set<std::size_t> named(worst.straggler.ranks.begin(), worst.straggler.ranks.end());
  for (const FoundStraggler& one : all) {
    const Straggler& other = one.straggler;
    if (2 * other.lost_ns < worst.straggler.lost_ns || other.ranks.size() > 1 ||
        one.sure_count < kEnoughCount || other.group == worst.straggler.group ||
        !named.insert(other.rank).second)
      continue;
    worst.straggler.also.push_back({other.rank, other.group, other.lost_ns});
  }
  return std::optional(std::move(worst.straggler));
}

}  // namespace tlparse
