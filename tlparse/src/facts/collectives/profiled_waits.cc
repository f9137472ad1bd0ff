#include "facts/collectives/profiled_waits.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "facts/collectives/compile_spans.h"
#include "queries/facts/collectives/profiled_waits.h"

namespace tlparse {
namespace {

struct TimeSpan {
  std::int64_t from_ns = 0, to_ns = 0;
  std::int64_t Length() const { return to_ns - from_ns; }
};
using SpansByRank = std::map<std::int64_t, std::vector<TimeSpan>>;

std::int64_t SharedNs(const TimeSpan& a, const TimeSpan& b) {
  return std::max<std::int64_t>(0, std::min(a.to_ns, b.to_ns) - std::max(a.from_ns, b.from_ns));
}

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

// By rank: when it was outside any such call while all others were inside one.
SpansByRank AwaitedTimes(const SpansByRank& calls, const TimeSpan& common) {
  std::vector<std::tuple<std::int64_t, std::int64_t, int>> edges;  // time, rank, change
  std::map<std::int64_t, int> depth;
  for (const auto& [rank, spans] : calls) {
    depth[rank] = 0;
    for (const TimeSpan& one : spans) {
      if (SharedNs(one, common) == 0) continue;
      edges.emplace_back(std::max(one.from_ns, common.from_ns), rank, 1);
      edges.emplace_back(std::min(one.to_ns, common.to_ns), rank, -1);
    }
  }
  std::sort(edges.begin(), edges.end());
  SpansByRank awaited;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const auto& [time_ns, rank, change] = edges[i];
    depth[rank] += change;
    const std::int64_t next_ns = std::get<0>(edges[i + 1]);
    const auto outside = static_cast<std::size_t>(
        std::count_if(depth.begin(), depth.end(), [](const auto& one) { return one.second == 0; }));
    if (next_ns == time_ns || outside != 1) continue;
    const auto one = std::find_if(depth.begin(), depth.end(),
                                  [](const auto& entry) { return entry.second == 0; });
    std::vector<TimeSpan>& spans = awaited[one->first];
    if (!spans.empty() && spans.back().to_ns == time_ns) {
      spans.back().to_ns = next_ns;
    } else {
      spans.push_back({time_ns, next_ns});
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

}  // namespace

Result<std::optional<ProfiledWait>> FindProfiledWait(Database& database, std::int64_t run_id,
                                                     const std::set<std::int64_t>& ranks) {
  constexpr std::int64_t kShareOfTime = 10, kTimesOthers = 3;
  std::optional<ProfiledWait> nothing;
  ASSIGN_OR_RETURN(const std::optional<TimeSpan> common, CommonSpan(database, run_id, ranks));
  if (!common) return nothing;
  SpansByRank calls;
  std::set<std::string> kinds;
  FOR_EACH_ROW(const BlockingCall& row, Query<BlockingCall>(database, {.run_id = run_id})) {
    calls[row.rank].push_back({row.start_ns, row.end_ns});
    kinds.emplace(row.kind);
  }
  if (calls.empty()) return nothing;
  FOR_EACH_ROW(const ProfileOfRank& row, Query<ProfileOfRank>(database, {.run_id = run_id}))
    calls[row.rank];
  ASSIGN_OR_RETURN(const std::vector<CompileSpan> compiles,
                   CompilesIn(database, run_id, common->from_ns, common->to_ns));
  const std::int64_t compiled_ns =
      std::min(common->Length(), CompiledByAny(compiles, common->to_ns));
  const SpansByRank awaited = AwaitedTimes(calls, *common);
  std::int64_t rank = -1, most_ns = 0, next_ns = 0;
  for (const auto& [one, spans] : awaited) {
    const std::int64_t own_ns = SteadyNs(spans);
    next_ns = std::max(next_ns, std::min(own_ns, most_ns));
    if (own_ns <= most_ns) continue;
    most_ns = own_ns;
    rank = one;
  }
  if (most_ns == 0 || kShareOfTime * most_ns < common->Length() - compiled_ns ||
      most_ns < kTimesOthers * next_ns)
    return nothing;
  std::vector<TimeSpan> spans = awaited.at(rank);
  ProfiledWait wait{.rank = rank,
                    .kinds = std::move(kinds),
                    .span_ns = common->Length(),
                    .compiled_ns = compiled_ns,
                    .since_ns = spans.front().from_ns};
  for (const auto& [other, of_rank] : calls) {
    if (other != rank) wait.waiting.push_back(other);
  }
  for (const TimeSpan& one : spans) wait.lost_ns += one.Length();
  RETURN_IF_ERROR(SetActivityOfWait(database, run_id, spans, wait));
  if (wait.activity.empty()) return nothing;
  std::sort(spans.begin(), spans.end(),
            [](const TimeSpan& a, const TimeSpan& b) { return a.Length() > b.Length(); });
  for (std::int64_t long_ns = 0; 10 * long_ns < 9 * wait.lost_ns; ++wait.count)
    long_ns += spans[wait.count].Length();
  wait.median_ns = spans[wait.count / 2].Length();
  return std::optional(std::move(wait));
}

}  // namespace tlparse
