// How long ranks compiled: medians, the ranks that took much longer, and why.
#include "queries/facts/ranks/compile_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/median.h"
#include "base/plural.h"
#include "facts/ranks/rank_facts.h"

namespace tlparse {

void RankFacts::SetCompileTime(RankClass& one) const {
  std::vector<double> complete, partial;
  for (const RankIndex rank : one.ranks) {
    const auto index = static_cast<std::size_t>(rank);
    (lacks_time_[index] == 0 ? complete : partial).push_back(compile_s_[index]);
  }
  one.is_at_least = complete.empty();
  one.median_compile_s = Median(one.is_at_least ? partial : complete);
}

// A rank with a compile of unknown time has no total to compare with, unless every rank has one.
void RankFacts::SetMedian(SlowestRank& slowest) const {
  std::vector<double> values;
  for (std::size_t rank = 0; rank < compile_s_.size(); ++rank)
    if (lacks_time_[rank] == 0) values.push_back(compile_s_[rank]);
  slowest.is_median_at_least = values.empty();
  slowest.is_of_complete = values.size() < compile_s_.size();
  if (values.empty()) values = compile_s_;
  slowest.median_s = Median(values);
  // If half of the ranks are slow, they are compared with the others.
  slowest.lower_median_s = LowerMedian(std::move(values));
}

// Machines that do other work vary by less than that.
bool RankFacts::IsSlow(double compile_s, double lower_median_s) {
  return compile_s >= 1.5 * lower_median_s && compile_s - lower_median_s >= 2;
}

// Whether it is no slow rank without the compiles that it had finished before any other rank began them.
bool RankFacts::WentFirst(RankIndex rank, double lower_median_s) const {
  double first_s = 0;
  for (std::size_t i = 0; i < job_->slots().size(); ++i) {
    const auto slot = static_cast<std::int32_t>(i);
    const std::int32_t index = job_->CompileOf(rank, slot);
    if (index < 0) continue;
    const JobCompile& own = job_->compiles()[static_cast<std::size_t>(index)];
    std::vector<double> others_s;
    bool is_first = own.start_us > 0;
    for (std::size_t other = 0; other < compile_s_.size() && is_first; ++other) {
      const std::int32_t at = job_->CompileOf(static_cast<RankIndex>(other), slot);
      if (at < 0 || at == index) continue;
      const JobCompile& one = job_->compiles()[static_cast<std::size_t>(at)];
      is_first = one.start_us >= own.start_us + own.duration_us;
      others_s.push_back(one.Seconds().value_or(0));
    }
    if (is_first && !others_s.empty())
      first_s += std::max(0.0, own.Seconds().value_or(0) - LowerMedian(std::move(others_s)));
  }
  return first_s > 0 &&
         !IsSlow(compile_s_[static_cast<std::size_t>(rank)] - first_s, lower_median_s);
}

void RankFacts::SetSlowRanks(SlowestRank& slowest) const {
  if (slowest.is_median_at_least || slowest.lower_median_s <= 0) return;
  for (std::size_t rank = 0; rank < compile_s_.size(); ++rank) {
    const double own_s = compile_s_[rank];
    if (IsSlow(own_s, slowest.lower_median_s)) {
      const auto index = static_cast<RankIndex>(rank);
      const bool is_first = WentFirst(index, slowest.lower_median_s);
      (is_first ? slowest.went_first : slowest.slow).push_back(index);
    } else if (lacks_time_[rank] == 0) {
      slowest.others_least_s =
          slowest.others_count == 0 ? own_s : std::min(slowest.others_least_s, own_s);
      slowest.others_most_s = std::max(slowest.others_most_s, own_s);
      ++slowest.others_count;
    }
  }
  if (slowest.slow.empty()) slowest.slow = slowest.went_first;
  if (slowest.slow.empty()) return;
  const auto seconds = [&](RankIndex one) { return compile_s_[static_cast<std::size_t>(one)]; };
  const auto [least, most] =
      std::minmax_element(slowest.slow.begin(), slowest.slow.end(),
                          [&](RankIndex a, RankIndex b) { return seconds(a) < seconds(b); });
  slowest.slow_least_s = seconds(*least);
  slowest.rank = *most;
  slowest.compile_s = seconds(*most);
  slowest.is_at_least = lacks_time_[static_cast<std::size_t>(*most)] != 0;
}

// The cache first: a miss among hits alone makes a rank slow, as does waiting for another process
// that compiles the key.
std::string RankFacts::ReasonOfSlowness(const CacheAnswer& cache, RankIndex rank,
                                        std::int32_t slot) const {
  constexpr std::int64_t kLeastWaitNs = 500'000'000;
  for (const CacheLookupAnswer& lookup : cache.lookup_answers) {
    const LookupSlot& place = cache.lookups.slots()[static_cast<std::size_t>(lookup.lookup_slot)];
    if (place.slot != slot) continue;
    for (const std::int32_t index : place.lookups) {
      const JobLookup& one = cache.lookups.lookups()[static_cast<std::size_t>(index)];
      if (one.participant == rank && one.waited_ns > std::max(one.time_taken_ns, kLeastWaitNs))
        return fmt::format("{:.2f} s of waiting for another process to compile the key of {}",
                           static_cast<double>(one.waited_ns) / 1e9,
                           cache.lookups.LayerName(place.layer_id));
    }
    const CacheClass* own = nullptr;
    std::size_t hits = 0;
    for (const CacheClass& one : lookup.classes) {
      if (std::find(one.ranks.begin(), one.ranks.end(), rank) != one.ranks.end()) own = &one;
      if (one.state == CacheState::kHit) hits += one.ranks.size();
    }
    if (own != nullptr && own->state != CacheState::kHit && hits > 0) {
      return fmt::format("{} {} where {} other{} hit", cache.lookups.LayerName(place.layer_id),
                         Name(own->state), hits, PluralS(hits));
    }
  }
  return {};
}

namespace {

struct EventExcess {
  std::string text;  // "44.21 s more in pass.x"; empty: no such event
  double seconds = 0;
  bool is_of_one = false;  // the other one spent next to nothing in it
};

// The innermost timed event, of those that are no phase of their own, in which a compile spent most
// of what it took longer than another one.
Result<EventExcess> InnermostExcess(Database& database, std::int64_t own_id,
                                    std::int64_t typical_id, double excess_s) {
  constexpr double kMost = 0.75;
  ASSIGN_OR_RETURN(const FirstRow<EventOfExcess> event,
                   First(Query<EventOfExcess>(database, {.own_id = own_id,
                                                         .typical_id = typical_id,
                                                         .least_us = kMost * excess_s * 1e6,
                                                         .least_event_us = kLeastNamedEventUs})));
  if (!event) return EventExcess();
  constexpr double kNextToNothing = 0.02;
  const double seconds = (event->own_us - event->typical_us) / 1e6;
  return EventExcess{.text = fmt::format("{:.2f} s more in {}", seconds, event->name),
                     .seconds = seconds,
                     .is_of_one = event->typical_us <= kNextToNothing * event->own_us};
}

// What the metrics of a compile have of its parts; empty: they are not in the log.
Result<std::vector<double>> TimesOfPhases(Database& database, std::int64_t compile_id) {
  ASSIGN_OR_RETURN(const FirstRow<PhasesOfCompile> row,
                   First(Query<PhasesOfCompile>(database, {.compile_id = compile_id})));
  if (!row) return std::vector<double>();
  return std::vector<double>{row->dynamo_us, row->inductor_us, row->backward_us,
                             row->before_restart_us, row->gc_us};
}

}  // namespace

Result<std::optional<SlowestRank>> RankFacts::FindSlowest(Database& database,
                                                          const CacheAnswer& cache) const {
  const auto slowest = std::max_element(compile_s_.begin(), compile_s_.end());
  // Logs without rank may be of programs that ran one after another: none waits for the slowest.
  const std::vector<JobParticipant>& participants = job_->participants();
  const bool has_ranks =
      std::any_of(participants.begin(), participants.end(),
                  [](const JobParticipant& one) { return one.rank.has_value(); });
  if (compile_s_.size() < 2 || *slowest <= 0 || job_->CountOfJob() < compile_s_.size() ||
      !has_ranks)
    return std::optional<SlowestRank>();
  SlowestRank result;
  result.rank = static_cast<RankIndex>(slowest - compile_s_.begin());
  result.compile_s = *slowest;
  result.is_at_least = lacks_time_[static_cast<std::size_t>(result.rank)] != 0;
  SetMedian(result);
  SetSlowRanks(result);
  std::int32_t worst_slot = -1, typical = -1;
  for (std::size_t i = 0; i < job_->slots().size(); ++i) {
    const auto slot = static_cast<std::int32_t>(i);
    const std::int32_t own = job_->CompileOf(result.rank, slot);
    const std::optional<double> own_s =
        own < 0 ? std::nullopt : job_->compiles()[static_cast<std::size_t>(own)].Seconds();
    if (!own_s) continue;
    std::vector<std::pair<double, std::int32_t>> others;
    for (std::size_t rank = 0; rank < compile_s_.size(); ++rank) {
      const std::int32_t other = job_->CompileOf(static_cast<RankIndex>(rank), slot);
      if (other < 0) {
        others.emplace_back(0, other);
      } else if (const auto s = job_->compiles()[static_cast<std::size_t>(other)].Seconds()) {
        others.emplace_back(*s, other);
      }
    }
    const std::size_t middle = (others.size() - 1) / 2;
    std::nth_element(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(middle),
                     others.end());
    const auto& [median, median_compile] = others[middle];
    const double excess = *own_s - median;
    constexpr double kLeastComparedS = 0.1;
    if (*own_s >= kLeastComparedS && median > 0) {
      const double times = *own_s / median;
      result.least_times = result.compared_count == 0 ? times : std::min(result.least_times, times);
      result.most_times = std::max(result.most_times, times);
      ++result.compared_count;
    }
    if (excess > result.compile_excess_s)
      result.compile_excess_s = excess, worst_slot = slot, typical = median_compile;
  }
  if (worst_slot < 0) return std::optional(result);
  result.compile = job_->SlotOf(worst_slot, {result.rank}).Title();
  result.slot = worst_slot;
  result.reason = ReasonOfSlowness(cache, result.rank, worst_slot);
  if (!result.reason.empty()) return std::optional(result);
  if (typical < 0) {
    result.reason = "half of the ranks or more do not compile it";
    return std::optional(result);
  }
  const std::int64_t own_id =
      job_->compiles()[static_cast<std::size_t>(job_->CompileOf(result.rank, worst_slot))].id;
  const std::int64_t typical_id = job_->compiles()[static_cast<std::size_t>(typical)].id;
  ASSIGN_OR_RETURN(EventExcess event,
                   InnermostExcess(database, own_id, typical_id, result.compile_excess_s));
  result.reason = std::move(event.text);
  result.is_of_one_event =
      event.is_of_one && !IsSlow(result.compile_s - event.seconds, result.lower_median_s);
  if (!result.reason.empty()) return std::optional(result);
  ASSIGN_OR_RETURN(const std::vector<double> own_phases, TimesOfPhases(database, own_id));
  ASSIGN_OR_RETURN(const std::vector<double> typical_phases, TimesOfPhases(database, typical_id));
  static constexpr const char* kPhaseNames[] = {"Dynamo with what it calls", "Inductor",
                                                "the backward", "attempts that were thrown away",
                                                "garbage collection"};
  double most = 0;
  for (std::size_t i = 1; i < own_phases.size() && i < typical_phases.size(); ++i) {
    const double excess = own_phases[i] - typical_phases[i];
    if (excess > most)
      most = excess,
      result.reason = fmt::format("{:.2f} s more in {}", excess / 1e6, kPhaseNames[i]);
  }
  if (const double rest_s = most / 1e6 - result.compile_excess_s; rest_s >= 0.01)
    result.reason += fmt::format(", {:.2f} s less in the rest", rest_s);
  if (result.reason.empty() && !own_phases.empty())
    result.reason =
        "more in Dynamo; neither Inductor, backward, restarts nor garbage collection took longer";
  return std::optional(result);
}

// Whether that compile was going on while another rank compiled the same. Else it may have filled the
// cache for the others, or it was another time on a busy machine.
bool RankFacts::OverlapsAnother(const std::vector<std::pair<double, std::int32_t>>& times,
                                std::int32_t index) const {
  const auto span = [&](std::int32_t of) {
    const JobCompile& compile = job_->compiles()[static_cast<std::size_t>(of)];
    return std::pair(compile.start_us, compile.start_us + static_cast<std::int64_t>(
                                                              compile.Seconds().value_or(0) * 1e6));
  };
  const auto own = span(index);
  return std::any_of(times.begin(), times.end(), [&](const auto& one) {
    const auto other = span(one.second);
    return one.second != index && other.first <= own.second && own.first <= other.second;
  });
}

Result<std::optional<StalledCompile>> RankFacts::FindStalled(Database& database,
                                                             const CacheAnswer& cache) const {
  constexpr double kLeastExcessS = 10, kLeastTimes = 3;
  std::optional<StalledCompile> stalled;
  if (job_->CountOfJob() < compile_s_.size()) return stalled;  // another job takes its own time
  double most_excess = kLeastExcessS;
  std::int32_t own_compile = -1, typical = -1;
  for (std::size_t i = 0; i < job_->slots().size(); ++i) {
    std::vector<std::pair<double, std::int32_t>> times;
    for (std::size_t rank = 0; rank < compile_s_.size(); ++rank) {
      const std::int32_t index =
          job_->CompileOf(static_cast<RankIndex>(rank), static_cast<std::int32_t>(i));
      if (index < 0) continue;
      if (const auto s = job_->compiles()[static_cast<std::size_t>(index)].Seconds())
        times.emplace_back(*s, index);
    }
    if (times.size() < 2) continue;
    std::sort(times.begin(), times.end());
    const std::int32_t median_compile = times[(times.size() - 1) / 2].second;
    const auto& [longest, longest_compile] = times.back();
    // The others take what they take: one rank is apart from all of them.
    const double next = times[times.size() - 2].first;
    if (longest - next <= most_excess || longest < kLeastTimes * next ||
        !OverlapsAnother(times, longest_compile))
      continue;
    most_excess = longest - next;
    own_compile = longest_compile;
    typical = median_compile;
    stalled =
        StalledCompile{job_->compiles()[static_cast<std::size_t>(longest_compile)].participant,
                       static_cast<std::int32_t>(i),
                       longest,
                       times.size() - 1,
                       times.front().first,
                       next,
                       {}};
  }
  if (!stalled) return stalled;
  // Where the others compiled something else for as long, as ranks do that compile in another order and
  // share a cache, none of them waits for it.
  const double more_s =
      compile_s_[static_cast<std::size_t>(stalled->rank)] - LowerMedian(compile_s_);
  if (2 * more_s < most_excess) return std::optional<StalledCompile>();
  stalled->reason = ReasonOfSlowness(cache, stalled->rank, stalled->slot);
  if (!stalled->reason.empty()) return stalled;
  ASSIGN_OR_RETURN(
      EventExcess event,
      InnermostExcess(database, job_->compiles()[static_cast<std::size_t>(own_compile)].id,
                      job_->compiles()[static_cast<std::size_t>(typical)].id, most_excess));
  stalled->reason = std::move(event.text);
  return stalled;
}

}  // namespace tlparse
