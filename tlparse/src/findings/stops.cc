#include "findings/stops.h"

#include <algorithm>
#include <tuple>

#include "queries/findings/stops.h"

namespace tlparse {
namespace {

constexpr std::int64_t kStopTimesSilence = 2;
constexpr std::int64_t kStopMarginUs = 50'000;

bool IsRank(const Job& job, RankIndex one) {
  const JobParticipant& participant = job.participants()[static_cast<std::size_t>(one)];
  return participant.rank && !participant.is_extra_log;
}

void FindInside(const FindingContext& context, std::vector<Stop>& stops) {
  for (const RankIndex rank : context.All()) {
    const ProcessStatus& status = context.StatusOf(rank);
    const JobCompile* compile = context.LastCompile(rank);
    if (status.state != RankState::kCompiling || compile == nullptr || compile->slot < 0 ||
        context.ReadableBytes(rank))
      continue;
    stops.push_back({.rank = rank,
                     .position = context.job.SlotPosition(compile->slot),
                     .is_backward = status.is_backward,
                     .last_us = status.last_record_us.value_or(INT64_MAX),
                     .phase = status.phase});
  }
}

// Ranks that lack nothing but the last compiles that most others have, and whose log ends before
// the others'.
void FindBehind(const FindingContext& context, std::vector<Stop>& stops) {
  const Job& job = context.job;
  // A log without rank, or a further one of a rank, is of a helper of the job.
  std::vector<RankIndex> ranks = context.All();
  std::erase_if(ranks, [&](RankIndex one) { return !IsRank(job, one); });
  const std::size_t count = ranks.size();
  // Of two ranks the one that lacks a compile ended early only if the other's log shows an end.
  const bool has_other_end = std::any_of(stops.begin(), stops.end(),
                                         [&](const Stop& one) { return IsRank(job, one.rank); });
  if (count < 2 || (count == 2 && !has_other_end)) return;
  std::vector<std::size_t> having(job.slots().size());
  for (const JobCompile& compile : job.compiles()) {
    if (compile.slot >= 0 && !compile.is_synthetic && IsRank(job, compile.participant))
      ++having[static_cast<std::size_t>(compile.slot)];
  }
  std::vector<Stop> behind;
  for (const RankIndex rank : ranks) {
    const ProcessStatus& status = context.StatusOf(rank);
    if (status.state != RankState::kBetweenCompiles || status.compile_id == 0 ||
        !status.last_record_us || context.ReadableBytes(rank))
      continue;
    std::int32_t last = -1, missing = -1, next_slot = -1;
    bool is_prefix = true;
    for (const std::int32_t slot : job.slot_order()) {
      const bool is_common = 2 * having[static_cast<std::size_t>(slot)] > count ||
                             (count == 2 && having[static_cast<std::size_t>(slot)] == 1 &&
                              job.CompileOf(rank, slot) < 0);
      const bool has_it = job.CompileOf(rank, slot) >= 0;
      if (has_it) last = job.SlotPosition(slot);
      if (is_common && !has_it && missing < 0) missing = job.SlotPosition(slot), next_slot = slot;
      if (has_it && (!is_common || missing >= 0)) is_prefix = false;
    }
    if (is_prefix && missing >= 0)
      behind.push_back({.rank = rank,
                        .position = last,
                        .is_inside = false,
                        .last_us = *status.last_record_us,
                        .next_slot = next_slot});
  }
  const std::int64_t latest_us = LatestRecord(context);
  std::erase_if(behind, [&](const Stop& stop) {
    // The others' next compile began after this log had ended.
    for (const JobCompile& compile : job.compiles()) {
      if (compile.slot == stop.next_slot && compile.start_us != 0 &&
          compile.start_us + 5'000'000 < stop.last_us)
        return true;
    }
    return stop.last_us >= latest_us;
  });
  if (2 * behind.size() < count || (count == 2 && behind.size() == 1))
    stops.insert(stops.end(), behind.begin(), behind.end());
}

}  // namespace

std::vector<Stop> FindStops(const FindingContext& context) {
  std::vector<Stop> stops;
  FindInside(context, stops);
  if (context.HasRanks()) FindBehind(context, stops);
  std::sort(stops.begin(), stops.end(), [](const Stop& a, const Stop& b) {
    return std::tuple(a.position, a.is_backward, a.last_us, a.rank) <
           std::tuple(b.position, b.is_backward, b.last_us, b.rank);
  });
  return stops;
}

std::int64_t LatestRecord(const FindingContext& context) {
  std::int64_t latest = 0;
  for (const ProcessStatus& status : context.status)
    latest = std::max(latest, status.last_record_us.value_or(0));
  return latest;
}

Result<bool> WasSilentBeforeOthers(const FindingContext& context, const Stop& stop) {
  const ProcessStatus& own = context.StatusOf(stop.rank);
  const JobCompile* own_compile = context.LastCompile(stop.rank);
  if (own.open_record_id == 0 || own_compile == nullptr) return false;
  ASSIGN_OR_RETURN(PreparedQuery<PauseInEvent> pause,
                   PreparedQuery<PauseInEvent>::Make(context.database));
  std::int64_t silence_us = -1;
  for (const RankIndex other : context.Others({stop.rank})) {
    const std::int32_t index = context.job.CompileOf(other, own_compile->slot);
    if (index < 0) continue;
    ASSIGN_OR_RETURN(
        const FirstRow<PauseInEvent> longest,
        First(pause.Run({.compile_id = context.job.compiles()[static_cast<std::size_t>(index)].id,
                         .event_record_id = own.open_record_id})));
    if (longest->records > 0) silence_us = std::max(silence_us, longest->longest_us);
  }
  return silence_us >= 0 &&
         LatestRecord(context) - stop.last_us > kStopTimesSilence * silence_us + kStopMarginUs;
}

}  // namespace tlparse
