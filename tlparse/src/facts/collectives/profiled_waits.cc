#include "facts/collectives/profiled_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "facts/collectives/arrivals.h"
#include "facts/collectives/compile_spans.h"
#include "facts/collectives/issued_members.h"
#include "facts/collectives/rank_meetings.h"
#include "facts/collectives/rank_states.h"
#include "facts/collectives/wait_activity.h"
#include "queries/facts/collectives/profiled_waits.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostOfMesh = 256;  // each pair of ranks is looked at

// What the profiles of all ranks cover, or of a group's; nothing: a rank has none, or several hosts have.
Result<std::optional<TimeSpan>> CommonSpan(Database& database, std::int64_t run_id,
                                           const std::set<std::int64_t>& ranks,
                                           bool is_of_group = false) {
  SpansByRank by_rank;
  std::set<std::string> hosts;
  FOR_EACH_ROW(const ProfileOfRank& row, Query<ProfileOfRank>(database, {.run_id = run_id})) {
    if (is_of_group && !ranks.contains(row.rank)) continue;
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

// Of sends and receives the parts in which the rank waits for them, where its stacks tell: one that was only
// issued lasts while the rank does something else.
Result<void> KeepWaited(Database& database, std::int64_t run_id, SpansByRank& messages) {
  SpansByRank waits;
  FOR_EACH_ROW(const WaitFrame& row, Query<WaitFrame>(database, {.run_id = run_id}))
    waits[row.rank].push_back({row.start_ns, row.end_ns});
  for (auto& [rank, own] : messages) {
    const auto found = waits.find(rank);
    if (found == waits.end()) continue;
    std::vector<TimeSpan> waited;
    for (const TimeSpan& call : own) {
      auto wait =
          std::partition_point(found->second.begin(), found->second.end(),
                               [&](const TimeSpan& one) { return one.to_ns <= call.from_ns; });
      for (; wait != found->second.end() && wait->from_ns < call.to_ns; ++wait)
        waited.push_back(
            {std::max(call.from_ns, wait->from_ns), std::min(call.to_ns, wait->to_ns)});
    }
    own = std::move(waited);
  }
  return {};
}

// The rank that was awaited longest, if it is three times as long as any other, a tenth of the time, and
// no chance. Several that count as one are those of many sets that were outside for longest: they need a quarter.
std::optional<std::int64_t> LongestAwaited(const SpansByRank& awaited, const TimeSpan& common,
                                           std::int64_t compiled_ns, bool are_several) {
  constexpr std::int64_t kTimesOthers = 3;
  const std::int64_t least_part = are_several ? 4 : 10;
  std::int64_t rank = -1, most_ns = 0, next_ns = 0;
  for (const auto& [one, spans] : awaited) {
    const std::int64_t own_ns = SteadyNs(spans);
    next_ns = std::max(next_ns, std::min(own_ns, most_ns));
    if (own_ns <= most_ns) continue;
    most_ns = own_ns;
    rank = one;
  }
  if (most_ns == 0 || least_part * most_ns < common.Length() - compiled_ns ||
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

// What is common to the profiles, without the times in which a rank waits in calls.
std::vector<TimeSpan> OutsideCalls(const RankTimes& of, std::int64_t rank) {
  std::vector<TimeSpan> calls = of.calls.at(rank), outside;
  std::sort(calls.begin(), calls.end(),
            [](const TimeSpan& a, const TimeSpan& b) { return a.from_ns < b.from_ns; });
  std::int64_t from_ns = of.common.from_ns;
  for (const TimeSpan& one : calls) {
    const std::int64_t to_ns = std::min(one.from_ns, of.common.to_ns);
    if (to_ns > from_ns) outside.push_back({from_ns, to_ns});
    from_ns = std::max(from_ns, one.to_ns);
  }
  if (from_ns < of.common.to_ns) outside.push_back({from_ns, of.common.to_ns});
  return outside;
}

// A rank that came late to an op that takes all as long is in it while the others wait.
void SetIdleMore(const RankTimes& of, ProfiledWait& wait) {
  if (wait.IsIdle() || wait.work.op.empty() || 2 * wait.work.op_ns < wait.lost_ns) return;
  std::int64_t own_op_ns = 0, own_idle_ns = 0, other_op_ns = 0, other_idle_ns = 0;
  for (const auto& [rank, work] : of.work) {
    const std::vector<TimeSpan> times = OutsideCalls(of, rank);
    const bool is_own = rank == wait.rank;
    std::int64_t& op_ns = is_own ? own_op_ns : other_op_ns;
    std::int64_t& idle_ns = is_own ? own_idle_ns : other_idle_ns;
    op_ns = std::max(op_ns, TimeOfOp(times, work, of.names, wait.work.op));
    std::int64_t sum_ns = 0;
    for (const TimeSpan& one : WithoutWork(times, work)) sum_ns += one.Length();
    idle_ns = std::max(idle_ns, sum_ns);
  }
  const std::int64_t more_ns = own_idle_ns - other_idle_ns;
  if (2 * more_ns >= wait.lost_ns && own_op_ns - other_op_ns < more_ns) wait.idle_more_ns = more_ns;
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
  wait.is_of_devices = of.is_of_devices;
  SetIdleMore(of, wait);
  // A CPU that is ahead of its device does something else meanwhile.
  if (!of.is_of_devices || wait.IsIdle()) {
    RETURN_IF_ERROR(SetActivityOfWait(database, run_id, spans, wait));
    ASSIGN_OR_RETURN(wait.function, FunctionIn(database, run_id, rank, spans));
  }
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

// Of three ranks or more, the one that alone runs backwards, or alone does not.
std::optional<std::int64_t> LoneRole(const SpansByRank& ranks,
                                     const std::vector<std::int64_t>& training) {
  if (ranks.size() < 3) return std::nullopt;
  if (training.size() == 1) return training.front();
  if (training.size() + 1 != ranks.size()) return std::nullopt;
  for (const auto& [rank, calls] : ranks) {
    if (!std::binary_search(training.begin(), training.end(), rank)) return rank;
  }
  return std::nullopt;
}

// Whether all others have calls with these ranks, or with ranks that have.
bool HaveCallsTogether(const RankTimes& of, const std::set<std::int64_t>& ranks,
                       bool are_messages) {
  if (of.calls.size() > kMostOfMesh) return true;
  SpansByRank calls;
  std::set<std::int64_t> others;
  for (const auto& [rank, spans] : of.calls) {
    const auto issued = of.issued.find(rank);
    calls.emplace(rank, issued == of.issued.end() ? spans : issued->second);
    if (!ranks.contains(rank)) others.insert(rank);
  }
  return RankMeetings(calls, of.common, of.traffic, are_messages).AreJoined(ranks, others);
}

// `together`: ranks that count as one. `training`: ranks that run backwards. `beside`: a rank with a part of its
// own in the job, which is not looked at.
Result<std::optional<ProfiledWait>> FindWaitFor(Database& database, std::int64_t run_id,
                                                const RankTimes& of, const RankStates& states,
                                                const std::set<std::int64_t>& together,
                                                const std::set<std::string>& kinds,
                                                const std::vector<std::int64_t>& training,
                                                std::optional<std::int64_t> beside = {}) {
  SpansByRank awaited = AwaitedTimes(states, of.issued, together);
  if (beside) awaited.erase(*beside);
  const auto describe = [&](std::int64_t rank, const std::vector<TimeSpan>& spans,
                            bool is_long_stage) -> Result<std::optional<ProfiledWait>> {
    if (!HaveCallsTogether(of, together.empty() ? std::set<std::int64_t>{rank} : together,
                           !kinds.contains("collectives")))
      return std::optional<ProfiledWait>();
    ASSIGN_OR_RETURN(ProfiledWait wait, Describe(database, run_id, of, rank, spans));
    wait.kinds = kinds;
    wait.is_long_stage = is_long_stage && wait.activity.empty();
    wait.ranks = {rank};
    if (!together.empty()) wait.ranks.assign(together.begin(), together.end());
    std::erase_if(wait.waiting, [&](std::int64_t one) { return together.contains(one); });
    for (const std::int64_t other : wait.waiting) {
      for (const ProfiledPair& pair : of.traffic.pairs) {
        if (pair.from == other && pair.to == rank) wait.sending.push_back(other);
        if (pair.from == rank && pair.to == other) wait.receiving.push_back(other);
      }
    }
    if (training == wait.ranks) wait.trains_alone = true;
    if (training == wait.waiting) wait.trains_alone = false;
    return std::optional(std::move(wait));
  };
  const auto is_it = [&](const std::optional<std::int64_t>& rank) {
    return rank && (together.empty() || together.contains(*rank));
  };
  const bool has_messages = kinds.size() > std::size_t{kinds.contains("collectives")};
  // What no stage has to do: no op of it.
  if (has_messages) {
    SpansByRank idle;
    for (const auto& [rank, spans] : awaited) idle[rank] = WithoutWork(spans, of.work.at(rank));
    const std::optional<std::int64_t> rank =
        LongestAwaited(idle, of.common, of.compiled_ns, !together.empty());
    if (is_it(rank) && 2 * SteadyNs(idle.at(*rank)) >= SteadyNs(awaited.at(*rank)))
      return describe(*rank, idle.at(*rank), false);
  }
  const std::optional<std::int64_t> rank =
      LongestAwaited(awaited, of.common, of.compiled_ns, !together.empty());
  if (!is_it(rank)) return std::optional<ProfiledWait>();
  return describe(*rank, awaited.at(*rank), has_messages);
}

// Of a mesh: a rank that the others of one of its groups wait for during half of the time, the longest wait of all. The groups may
// have come to their profiled steps at other times.
Result<std::optional<ProfiledWait>> FindWaitInGroups(Database& database, std::int64_t run_id,
                                                     RankTimes of,
                                                     const std::vector<std::int64_t>& training) {
  std::optional<ProfiledWait> longest;
  FOR_EACH_ROW(const GroupOfProfiles& row, Query<GroupOfProfiles>(database, {.run_id = run_id})) {
    const std::vector<std::int64_t> members = RanksInText(row.ranks);
    const std::set<std::int64_t> ranks(members.begin(), members.end());
    const bool are_known = std::all_of(ranks.begin(), ranks.end(),
                                       [&](std::int64_t rank) { return of.calls.contains(rank); });
    if (ranks.size() < 2 || ranks.size() >= of.calls.size() || !are_known) continue;
    ASSIGN_OR_RETURN(const std::optional<TimeSpan> common,
                     CommonSpan(database, run_id, ranks, true));
    if (!common) continue;
    of.common = *common;
    ASSIGN_OR_RETURN(of.compiles, CompilesIn(database, run_id, common->from_ns, common->to_ns));
    of.compiled_ns = std::min(common->Length(), CompiledByAny(of.compiles, common->to_ns));
    const RankTimes part = TimesOfGroup(of, ranks);
    ASSIGN_OR_RETURN(
        std::optional<ProfiledWait> one,
        FindWaitFor(database, run_id, part, RankStates(part), {}, {"collectives"}, training));
    // Of many small groups some rank of one is a little late by chance.
    const bool is_most = one && 2 * one->lost_ns >= common->Length() - of.compiled_ns;
    if (!is_most || (longest && longest->lost_ns >= one->lost_ns)) continue;
    longest = std::move(one);
    longest->group = row.description.empty() || row.description == "undefined"
                         ? fmt::format("group {}", row.name)
                         : fmt::format("group {} ({})", row.description, row.name);
  }
  return longest;
}

// One that all others wait for.
Result<std::optional<ProfiledWait>> FindWaitOfAll(Database& database, std::int64_t run_id,
                                                  const RankTimes& of,
                                                  const std::set<std::string>& kinds,
                                                  const std::vector<std::int64_t>& training) {
  const RankStates states(of);
  ASSIGN_OR_RETURN(std::optional<ProfiledWait> one,
                   FindWaitFor(database, run_id, of, states, {}, kinds, training));
  if (one && !one->is_long_stage) return one;
  const std::set<std::int64_t> together = SlowTogether(states);
  if (!together.empty()) {
    ASSIGN_OR_RETURN(std::optional<ProfiledWait> several,
                     FindWaitFor(database, run_id, of, states, together, kinds, training));
    if (several && !several->is_long_stage) return several;
  }
  // The others wait for a learner as well, in turn.
  const std::optional<std::int64_t> alone = LoneRole(of.calls, training);
  if (one || !alone) return one;
  return FindWaitFor(database, run_id, of, states, {}, kinds, training, alone);
}

}  // namespace

Result<std::optional<ProfiledWait>> FindProfiledWait(Database& database, std::int64_t run_id,
                                                     const std::set<std::int64_t>& ranks) {
  std::optional<ProfiledWait> nothing;
  ASSIGN_OR_RETURN(const std::optional<TimeSpan> common, CommonSpan(database, run_id, ranks));
  RankTimes of;
  std::set<std::string> kinds;
  SpansByRank of_cpu, messages, of_host;
  FOR_EACH_ROW(const BlockingCall& row, Query<BlockingCall>(database, {.run_id = run_id})) {
    SpansByRank& calls = row.is_of_device            ? of.calls
                         : row.kind == "collectives" ? of_cpu
                                                     : messages;
    calls[row.rank].push_back({row.start_ns, row.end_ns});
    (row.is_of_device ? of.issued : of_host)[row.rank].push_back({row.start_ns, row.end_ns});
    kinds.emplace(row.kind);
  }
  of.is_of_devices = !of.calls.empty();
  if (!of.is_of_devices) {
    RETURN_IF_ERROR(KeepWaited(database, run_id, messages));
    of.calls = std::move(of_cpu);
    of.issued = std::move(of_host);
    for (const auto& [rank, own] : messages)
      of.calls[rank].insert(of.calls[rank].end(), own.begin(), own.end());
  }
  const bool may_be_in_group =
      messages.empty() && !of.is_of_devices && of.calls.size() <= kMostOfMesh;
  if (of.calls.empty() || (!common && !may_be_in_group)) return nothing;
  FOR_EACH_ROW(const ProfileOfRank& row, Query<ProfileOfRank>(database, {.run_id = run_id}))
    of.calls[row.rank];
  ASSIGN_OR_RETURN(of.names, LoadRunNames(database, run_id));
  if (!messages.empty() || of.is_of_devices) {
    ASSIGN_OR_RETURN(of.traffic, LoadProfiledTraffic(database, run_id));
  }
  for (const auto& [rank, spans] : of.calls) {
    ASSIGN_OR_RETURN(std::optional<std::vector<WorkSpan>> work,
                     LoadRankWork(database, run_id, rank, of.names, of.is_of_devices));
    if (!work) return nothing;
    of.work.emplace(rank, std::move(*work));
  }
  std::vector<std::int64_t> training;
  FOR_EACH_ROW(const TrainingRank& row, Query<TrainingRank>(database, {.run_id = run_id}))
    training.push_back(row.rank);
  if (common) {
    of.common = *common;
    ASSIGN_OR_RETURN(of.compiles, CompilesIn(database, run_id, common->from_ns, common->to_ns));
    of.compiled_ns = std::min(common->Length(), CompiledByAny(of.compiles, common->to_ns));
    ASSIGN_OR_RETURN(std::optional<ProfiledWait> of_all,
                     FindWaitOfAll(database, run_id, of, kinds, training));
    if (of_all || !may_be_in_group) return of_all;
  }
  return FindWaitInGroups(database, run_id, std::move(of), training);
}

}  // namespace tlparse
