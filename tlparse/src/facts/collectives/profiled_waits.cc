#include "facts/collectives/profiled_waits.h"

#include <algorithm>
#include <map>
#include <utility>

#include "facts/collectives/arrivals.h"
#include "facts/collectives/compile_spans.h"
#include "queries/facts/collectives/profiled_waits.h"

namespace tlparse {
namespace {

using SpansByRank = std::map<std::int64_t, std::vector<TimeSpan>>;

// What the profiles of all ranks cover; nothing: a rank has none, or several hosts have.
Result<std::optional<TimeSpan>> CommonSpan(Database& database, std::int64_t run_id,
                                           const std::set<std::int64_t>& ranks) {
  SpansByRank by_rank;
  std::set<std::string> hosts;
  FOR_EACH_ROW(const ProfileOfRank& row, Query<ProfileOfRank>(database, {.run_id = run_id})) {
    by_rank[row.rank].push_back({row.start_us * 1000, row.end_us * 1000});
    if (!row.host.empty()) hosts.insert(std::string(row.host));
  }
  std::optional<TimeSpan> nothing;
  const bool are_all = std::all_of(ranks.begin(), ranks.end(),
                                   [&](std::int64_t rank) { return by_rank.count(rank) > 0; });
  if (by_rank.size() < 2 || !are_all || hosts.size() > 1) return nothing;
  TimeSpan common{INT64_MIN, INT64_MAX};
  for (const auto& [rank, spans] : by_rank) {
    if (spans.size() > 1) return nothing;  // what came between them is not known
    common.from_ns = std::max(common.from_ns, spans.front().from_ns);
    common.to_ns = std::min(common.to_ns, spans.front().to_ns);
  }
  return common.Length() > 0 ? std::optional(common) : nothing;
}

struct RankTimes {
  TimeSpan common;
  std::int64_t compiled_ns = 0;
  SpansByRank calls;
  std::map<std::int64_t, std::vector<WorkSpan>> work;
  std::vector<CompileSpan> compiles;  // of logs: other findings tell of them
  RunNames names;
};

// By rank: when it was outside any such call while all others waited inside one.
SpansByRank AwaitedTimes(const RankTimes& of) {
  struct State {
    std::int64_t rank = 0;
    int calls = 0, work = 0, compiles = 0;
    bool IsWaiting() const { return calls > 0 && work == 0 && compiles == 0; }
    bool IsElsewhere() const { return calls == 0 && compiles == 0; }
  };
  struct Edge {
    std::int64_t time_ns = 0;
    std::size_t rank = 0;  // of `states`
    int State::*counter = nullptr;
    int change = 0;
  };
  std::vector<State> states;
  std::vector<Edge> edges;
  const auto add = [&](const TimeSpan& time, int State::*counter) {
    if (SharedNs(time, of.common) == 0) return;
    const std::size_t rank = states.size() - 1;
    edges.push_back({std::max(time.from_ns, of.common.from_ns), rank, counter, 1});
    edges.push_back({std::min(time.to_ns, of.common.to_ns), rank, counter, -1});
  };
  for (const auto& [rank, spans] : of.calls) {
    states.push_back({.rank = rank});
    for (const TimeSpan& one : spans) add(one, &State::calls);
    for (const WorkSpan& one : of.work.at(rank)) add(one.time, &State::work);
    for (const CompileSpan& one : of.compiles) {
      if (one.rank == rank) add({one.start_ns, one.end_ns}, &State::compiles);
    }
  }
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return a.time_ns < b.time_ns; });
  SpansByRank awaited;
  // One rank does not wait if their indices sum up to its own.
  std::size_t waiting = 0, free_sum = states.size() * (states.size() - 1) / 2;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const Edge& edge = edges[i];
    State& state = states[edge.rank];
    const bool was_waiting = state.IsWaiting();
    state.*edge.counter += edge.change;
    if (state.IsWaiting() != was_waiting) {
      waiting = was_waiting ? waiting - 1 : waiting + 1;
      free_sum = was_waiting ? free_sum + edge.rank : free_sum - edge.rank;
    }
    const std::int64_t next_ns = edges[i + 1].time_ns;
    if (next_ns == edge.time_ns || waiting + 1 != states.size() || !states[free_sum].IsElsewhere())
      continue;
    std::vector<TimeSpan>& spans = awaited[states[free_sum].rank];
    if (!spans.empty() && spans.back().to_ns == edge.time_ns) {
      spans.back().to_ns = next_ns;
    } else {
      spans.push_back({edge.time_ns, next_ns});
    }
  }
  return awaited;
}

// The sum without the longest: one delay is a compile, or a pause.
std::int64_t SteadyNs(const std::vector<TimeSpan>& spans) {
  std::int64_t sum_ns = 0, longest_ns = 0;
  for (const TimeSpan& one : spans) {
    sum_ns += one.Length();
    longest_ns = std::max(longest_ns, one.Length());
  }
  return sum_ns - longest_ns;
}

// The part of the rank's program that took half of the steady times, and hardly ran elsewhere.
Result<void> SetActivityOfWait(Database& database, std::int64_t run_id,
                               const std::vector<TimeSpan>& awaited, ProfiledWait& wait) {
  struct Activity {
    std::int64_t total_ns = 0;
    std::vector<std::int64_t> shared_ns;  // by time of `awaited`
  };
  const auto longest =
      static_cast<std::size_t>(std::max_element(awaited.begin(), awaited.end(),
                                                [](const TimeSpan& a, const TimeSpan& b) {
                                                  return a.Length() < b.Length();
                                                }) -
                               awaited.begin());
  std::map<std::string, Activity> activities;
  FOR_EACH_ROW(const AnnotationOfRank& row,
               Query<AnnotationOfRank>(database, {.run_id = run_id, .rank = wait.rank})) {
    Activity& one = activities[std::string(row.name)];
    one.shared_ns.resize(awaited.size());
    const TimeSpan span{row.start_ns, row.end_ns};
    one.total_ns += span.Length();
    for (std::size_t i = 0; i < awaited.size(); ++i) one.shared_ns[i] += SharedNs(span, awaited[i]);
  }
  for (const auto& [name, one] : activities) {
    std::int64_t shared_ns = 0;
    for (const std::int64_t ns : one.shared_ns) shared_ns += ns;
    const bool is_most = 2 * (shared_ns - one.shared_ns[longest]) >= SteadyNs(awaited);
    if (!is_most || 2 * one.total_ns > 3 * shared_ns || shared_ns <= wait.activity_ns) continue;
    wait.activity = name;
    wait.activity_ns = shared_ns;
  }
  return {};
}

// The rank that was awaited longest, if it is three times as long as any other, a tenth of the time, and
// no chance.
std::optional<std::int64_t> LongestAwaited(const SpansByRank& awaited, const TimeSpan& common,
                                           std::int64_t compiled_ns) {
  constexpr std::int64_t kShareOfTime = 10, kTimesOthers = 3;
  std::int64_t rank = -1, most_ns = 0, next_ns = 0;
  for (const auto& [one, spans] : awaited) {
    const std::int64_t own_ns = SteadyNs(spans);
    next_ns = std::max(next_ns, std::min(own_ns, most_ns));
    if (own_ns <= most_ns) continue;
    most_ns = own_ns;
    rank = one;
  }
  if (most_ns == 0 || kShareOfTime * most_ns < common.Length() - compiled_ns ||
      most_ns < kTimesOthers * next_ns)
    return std::nullopt;
  constexpr std::uint8_t kParts = 16;
  std::vector<std::map<std::int64_t, std::int64_t>> parts(kParts);
  std::vector<std::int64_t> own_ns, others_ns;
  for (const auto& [one, spans] : awaited) {
    for (const TimeSpan& span : spans) {
      (one == rank ? own_ns : others_ns).push_back(span.Length());
      const std::int64_t part =
          (span.from_ns - common.from_ns) / (common.Length() / std::int64_t{kParts} + 1);
      parts[static_cast<std::size_t>(std::clamp(part, std::int64_t{0}, std::int64_t{kParts} - 1))]
           [one] += span.Length();
    }
  }
  std::size_t longest_in = 0;
  for (const auto& part : parts) {
    const auto most = std::max_element(
        part.begin(), part.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    longest_in += most != part.end() && most->first == rank;
  }
  // Of two ranks one is longer in twelve of sixteen parts by chance once in 26 times.
  const std::size_t least_in = awaited.size() > 2 ? kParts * 3 / 4 : kParts * 7 / 8;
  return longest_in >= least_in || StandOut(own_ns, std::move(others_ns)) ? std::optional(rank)
                                                                          : std::nullopt;
}

Result<ProfiledWait> Describe(Database& database, std::int64_t run_id, const RankTimes& of,
                              std::int64_t rank, std::vector<TimeSpan> spans) {
  ProfiledWait wait{.rank = rank,
                    .span_ns = of.common.Length(),
                    .compiled_ns = of.compiled_ns,
                    .since_ns = spans.front().from_ns};
  for (const auto& [other, of_rank] : of.calls) {
    if (other != rank) wait.waiting.push_back(other);
  }
  for (const TimeSpan& one : spans) wait.lost_ns += one.Length();
  wait.work = MostWorkIn(spans, of.work.at(rank), of.names);
  RETURN_IF_ERROR(SetActivityOfWait(database, run_id, spans, wait));
  ASSIGN_OR_RETURN(wait.function, FunctionIn(database, run_id, rank, spans));
  ASSIGN_OR_RETURN(const FirstRow<StepsInTime> steps,
                   First(Query<StepsInTime>(database, {.run_id = run_id,
                                                       .rank = rank,
                                                       .from_ns = of.common.from_ns,
                                                       .to_ns = of.common.to_ns})));
  wait.steps = static_cast<std::size_t>(steps->count);
  std::sort(spans.begin(), spans.end(),
            [](const TimeSpan& a, const TimeSpan& b) { return a.Length() > b.Length(); });
  for (std::int64_t long_ns = 0; 10 * long_ns < 9 * wait.lost_ns; ++wait.count)
    long_ns += spans[wait.count].Length();
  wait.median_ns = spans[wait.count / 2].Length();
  return wait;
}

}  // namespace

Result<std::optional<ProfiledWait>> FindProfiledWait(Database& database, std::int64_t run_id,
                                                     const std::set<std::int64_t>& ranks) {
  std::optional<ProfiledWait> nothing;
  ASSIGN_OR_RETURN(const std::optional<TimeSpan> common, CommonSpan(database, run_id, ranks));
  if (!common) return nothing;
  RankTimes of;
  of.common = *common;
  std::set<std::string> kinds;
  FOR_EACH_ROW(const BlockingCall& row, Query<BlockingCall>(database, {.run_id = run_id})) {
    of.calls[row.rank].push_back({row.start_ns, row.end_ns});
    kinds.emplace(row.kind);
  }
  if (of.calls.empty()) return nothing;
  FOR_EACH_ROW(const ProfileOfRank& row, Query<ProfileOfRank>(database, {.run_id = run_id}))
    of.calls[row.rank];
  ASSIGN_OR_RETURN(of.names, LoadRunNames(database, run_id));
  for (const auto& [rank, spans] : of.calls) {
    ASSIGN_OR_RETURN(std::optional<std::vector<WorkSpan>> work,
                     LoadRankWork(database, run_id, rank, of.names));
    if (!work) return nothing;
    of.work.emplace(rank, std::move(*work));
  }
  ASSIGN_OR_RETURN(of.compiles, CompilesIn(database, run_id, common->from_ns, common->to_ns));
  of.compiled_ns = std::min(common->Length(), CompiledByAny(of.compiles, common->to_ns));
  const SpansByRank awaited = AwaitedTimes(of);
  const bool has_messages = kinds.size() > std::size_t{kinds.contains("collectives")};
  // What no stage has to do: no op of it.
  if (has_messages) {
    SpansByRank idle;
    for (const auto& [rank, spans] : awaited) idle[rank] = WithoutWork(spans, of.work.at(rank));
    const std::optional<std::int64_t> rank = LongestAwaited(idle, *common, of.compiled_ns);
    if (rank && 2 * SteadyNs(idle.at(*rank)) >= SteadyNs(awaited.at(*rank))) {
      ASSIGN_OR_RETURN(ProfiledWait wait,
                       Describe(database, run_id, of, *rank, std::move(idle.at(*rank))));
      wait.kinds = std::move(kinds);
      return std::optional(std::move(wait));
    }
  }
  const std::optional<std::int64_t> rank = LongestAwaited(awaited, *common, of.compiled_ns);
  if (!rank) return nothing;
  ASSIGN_OR_RETURN(ProfiledWait wait, Describe(database, run_id, of, *rank, awaited.at(*rank)));
  wait.kinds = std::move(kinds);
  wait.is_long_stage = has_messages && wait.activity.empty();
  return std::optional(std::move(wait));
}

}  // namespace tlparse
