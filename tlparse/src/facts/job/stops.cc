#include "facts/job/stops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "facts/job/role_members.h"
#include "facts/text/compile_label.h"
#include "queries/facts/job/stops.h"

namespace tlparse {
namespace {

constexpr std::int64_t kStopTimesSilence = 2;
constexpr std::int64_t kStopMarginUs = 50'000;

bool IsRank(const Job& job, RankIndex one) {
  const JobParticipant& participant = job.participants()[static_cast<std::size_t>(one)];
  return participant.rank && !participant.is_extra_log;
}

Result<void> FindInside(const JobStatus& context, std::vector<Stop>& stops) {
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
    if (status.phase != kCompilerCollective) continue;
    ASSIGN_OR_RETURN(stops.back().awaited, AwaitedRanks(context, rank, kCompilerCollective));
  }
  return {};
}

// How far the logs go: the last function that each rank began to compile, and its backwards.
void SetReach(const JobStatus& context, std::vector<Stop>& stops) {
  std::map<RankIndex, Stop*> of_rank;
  for (Stop& stop : stops) {
    stop.reach = stop.position;
    of_rank[stop.rank] = &stop;
  }
  for (const JobCompile& one : context.job.compiles()) {
    const auto found = of_rank.find(one.participant);
    if (found == of_rank.end() || one.slot < 0) continue;
    Stop& stop = *found->second;
    stop.backwards += one.backward_duration_us > 0;
    if (stop.is_inside && stop.is_backward)
      stop.reach = std::max(stop.reach, context.job.SlotPosition(one.slot));
  }
}

// Whether the function had been compiled before: what it was given decides whether it is again.
bool IsRecompile(const JobSlot& slot) { return IsOfRecompile(slot.label); }

// Ranks that lack nothing but the last steps that most others have, and whose log ends before the
// others'. A step is a compile, or the backward of one. A recompile is one only if another log shows
// that the job came to no good end.
class BehindFinder {
 public:
  // `ranks`: that do equal work, as far as is known.
  BehindFinder(const JobStatus& context, std::vector<RankIndex> ranks, bool has_other_end)
      : context_(context),
        job_(context.job),
        has_other_end_(has_other_end),
        ranks_(std::move(ranks)) {}

  Result<std::vector<Stop>> Find();

 private:
  struct Having {
    std::int32_t example = -1;                // one of the compiles
    std::size_t forwards = 0, backwards = 0;  // ranks
  };
  void Count();
  Having HavingOf(std::int32_t slot, const JobCompile* own) const;
  std::optional<Stop> BehindAt(RankIndex rank) const;
  Result<bool> LacksBackward(RankIndex rank, std::int32_t slot);
  // What collectives a compile holds, which are of all ranks of a group.
  struct Needs {
    bool a_group = false;
    bool all = false;  // of c10d's group of all ranks
  };
  Result<Needs> NeedsOf(std::int32_t slot);
  bool BeganLongBefore(const Stop& stop) const;
  const JobCompile* CompileOf(RankIndex rank, std::int32_t slot) const {
    const std::int32_t index = job_.CompileOf(rank, slot);
    return index < 0 ? nullptr : &job_.compiles()[static_cast<std::size_t>(index)];
  }
  bool HasBackward(RankIndex rank, const JobCompile& compile) const {
    const ProcessStatus& status = context_.StatusOf(rank);
    return compile.backward_duration_us > 0 ||
           (status.compile_id == compile.id && status.is_backward);
  }

  const JobStatus& context_;
  const Job& job_;
  bool has_other_end_;
  std::vector<RankIndex> ranks_;
  // One label may be of several functions on several ranks, as of trainers and samplers.
  std::vector<std::map<std::int32_t, Having>> having_;  // by slot, by function
};

// A log without rank, or a further one of a rank, is of a helper of the job.
void BehindFinder::Count() {
  std::erase_if(ranks_, [&](RankIndex one) { return !IsRank(job_, one); });
  having_.resize(job_.slots().size());
  for (const JobCompile& compile : job_.compiles()) {
    if (compile.slot < 0 || compile.is_synthetic ||
        !std::binary_search(ranks_.begin(), ranks_.end(), compile.participant))
      continue;
    Having& having = having_[static_cast<std::size_t>(compile.slot)][compile.function_id];
    if (having.example < 0)
      having.example = static_cast<std::int32_t>(&compile - job_.compiles().data());
    ++having.forwards;
    having.backwards += HasBackward(compile.participant, compile);
  }
}

// The ranks that have a slot's compile of the function of `own`; nullptr: of that which most have.
BehindFinder::Having BehindFinder::HavingOf(std::int32_t slot, const JobCompile* own) const {
  Having most;
  for (const auto& [function, having] : having_[static_cast<std::size_t>(slot)]) {
    if (own != nullptr ? function == own->function_id : having.forwards > most.forwards)
      most = having;
  }
  return most;
}

// The first compile that this rank lacks, if it lacks no other but later ones.
std::optional<Stop> BehindFinder::BehindAt(RankIndex rank) const {
  const ProcessStatus& status = context_.StatusOf(rank);
  const std::size_t count = ranks_.size();
  Stop stop{.rank = rank, .is_inside = false, .last_us = *status.last_record_us};
  bool is_prefix = true;
  for (const std::int32_t slot : job_.slot_order()) {
    if (!has_other_end_ && IsRecompile(job_.slots()[static_cast<std::size_t>(slot)])) continue;
    const JobCompile* const own = CompileOf(rank, slot);
    if (own != nullptr && own->is_synthetic) continue;
    const std::size_t having = HavingOf(slot, own).forwards;
    const bool has_it = own != nullptr;
    const bool is_common = 2 * having > count || (count == 2 && having == 1 && !has_it);
    if (has_it) stop.position = job_.SlotPosition(slot);
    if (is_common && !has_it && stop.next_slot < 0) stop.next_slot = slot;
    if (has_it && (!is_common || stop.next_slot >= 0)) is_prefix = false;
  }
  return is_prefix ? std::optional(stop) : std::nullopt;
}

// Whether most others went on to the backward of this last compile. A cache that has the forward may
// have the backward too: then none is compiled.
Result<bool> BehindFinder::LacksBackward(RankIndex rank, std::int32_t slot) {
  const JobCompile* const compile = CompileOf(rank, slot);
  const std::size_t having = HavingOf(slot, compile).backwards;
  const bool is_common = 2 * having > ranks_.size() || (ranks_.size() == 2 && having == 1);
  if (compile == nullptr || !is_common || HasBackward(rank, *compile)) return false;
  ASSIGN_OR_RETURN(const FirstRow<HitsOfCompile> hits,
                   First(Query<HitsOfCompile>(context_.database, {.compile_id = compile->id})));
  return hits->hits == 0;
}

Result<BehindFinder::Needs> BehindFinder::NeedsOf(std::int32_t slot) {
  for (const RankIndex rank : ranks_) {
    const JobCompile* const compile = CompileOf(rank, slot);
    if (compile == nullptr) continue;
    ASSIGN_OR_RETURN(
        const FirstRow<CollectivesOfCompile> found,
        First(Query<CollectivesOfCompile>(context_.database, {.compile_id = compile->id})));
    if (found->has_collectives) return Needs{true, found->are_of_all};
  }
  return Needs{};
}

// The others' next compile began after this log had ended.
bool BehindFinder::BeganLongBefore(const Stop& stop) const {
  return !stop.is_next_backward &&
         std::any_of(job_.compiles().begin(), job_.compiles().end(), [&](const JobCompile& one) {
           return one.slot == stop.next_slot && one.start_us != 0 &&
                  one.start_us + 5'000'000 < stop.last_us;
         });
}

Result<std::vector<Stop>> BehindFinder::Find() {
  Count();
  const std::size_t count = ranks_.size();
  std::vector<Stop> behind;
  if (count < 2) return behind;
  const std::int64_t latest_us = LatestRecord(context_);
  for (const RankIndex rank : ranks_) {
    const ProcessStatus& status = context_.StatusOf(rank);
    if (status.state != RankState::kBetweenCompiles || status.compile_id == 0 ||
        !status.last_record_us || context_.ReadableBytes(rank))
      continue;
    std::optional<Stop> stop = BehindAt(rank);
    const JobCompile* const last = context_.LastCompile(rank);
    if (!stop || last == nullptr || last->slot < 0) continue;
    ASSIGN_OR_RETURN(const bool lacks_backward, LacksBackward(rank, last->slot));
    if (stop->next_slot < 0 && !lacks_backward) continue;
    Needs next;
    if (stop->next_slot >= 0) {
      ASSIGN_OR_RETURN(next, NeedsOf(stop->next_slot));
    }
    stop->needs_all = next.a_group;
    // A rank that the others need in a collective may compile for longer than they did, and end. One
    // that lacks a backward as well may have another role, unless the collective is of all.
    const bool may_end_last = next.all || (next.a_group && !lacks_backward);
    if (lacks_backward) {
      stop->next_slot = last->slot;
      stop->is_next_backward = true;
      ASSIGN_OR_RETURN(const Needs own, NeedsOf(last->slot));
      stop->needs_all |= own.a_group;
    }
    if (!may_end_last && (stop->last_us >= latest_us || BeganLongBefore(*stop))) continue;
    // Of two ranks the one that lacks a compile ended early only if the other's log shows an end, the
    // compile is of both, or it is the backward of a forward that both compiled.
    if (count == 2 && !has_other_end_ && !stop->needs_all && !stop->is_next_backward) continue;
    stop->next_compile = HavingOf(stop->next_slot, stop->is_next_backward ? last : nullptr).example;
    behind.push_back(*stop);
  }
  if (2 * behind.size() >= count && !(count == 2 && behind.size() == 1)) behind.clear();
  return behind;
}

// Of ranks of several roles most may lack what one role compiles.
Result<std::vector<Stop>> FindBehindInRoles(const JobStatus& context, bool has_other_end) {
  std::vector<Stop> behind;
  ASSIGN_OR_RETURN(const std::vector<Role>* const roles,
                   LoadRoles(context.database, context.job, context.damage));
  for (const Role& role : *roles) {
    if (roles->size() == 1) break;
    ASSIGN_OR_RETURN(const std::vector<Stop> own,
                     BehindFinder(context, role.members, has_other_end).Find());
    behind.insert(behind.end(), own.begin(), own.end());
  }
  return behind;
}

// How far a log goes within its last compile.
int StepOf(const Stop& stop) {
  if (stop.is_inside) return stop.is_backward ? 2 : 0;
  return stop.is_next_backward ? 1 : 3;
}

}  // namespace

Result<std::vector<Stop>> FindStops(const JobStatus& context) {
  std::vector<Stop> stops;
  RETURN_IF_ERROR(FindInside(context, stops));
  if (context.HasRanks()) {
    // A log that is cut off shows no end of the job: it was copied in part.
    const bool has_other_end = std::any_of(stops.begin(), stops.end(), [&](const Stop& one) {
      return IsRank(context.job, one.rank) && !context.IsCut(one.rank);
    });
    ASSIGN_OR_RETURN(std::vector<Stop> behind,
                     BehindFinder(context, context.All(), has_other_end).Find());
    if (behind.empty()) {
      ASSIGN_OR_RETURN(behind, FindBehindInRoles(context, has_other_end));
    }
    stops.insert(stops.end(), behind.begin(), behind.end());
  }
  SetReach(context, stops);
  std::sort(stops.begin(), stops.end(), [](const Stop& a, const Stop& b) {
    return std::tuple(a.reach, StepOf(a), a.backwards, a.last_us, a.rank) <
           std::tuple(b.reach, StepOf(b), b.backwards, b.last_us, b.rank);
  });
  return stops;
}

Result<std::vector<RankIndex>> AwaitedRanks(const JobStatus& context, RankIndex rank,
                                            std::string_view event) {
  std::vector<std::int64_t> begun(context.job.participants().size());
  FOR_EACH_ROW(
      const EventsOfProcess& row,
      Query<EventsOfProcess>(context.database,
                             {.name = event, .in_logs = context.job.InLogs("e.record_id")})) {
    const RankIndex participant = context.job.ParticipantOfProcess(row.process_id);
    if (participant >= 0) begun[static_cast<std::size_t>(participant)] += row.events;
  }
  std::vector<RankIndex> awaited;
  for (const RankIndex other : context.Others({rank})) {
    if (IsRank(context.job, other) && !context.damage.AreDamaged({other}) &&
        begun[static_cast<std::size_t>(other)] < begun[static_cast<std::size_t>(rank)])
      awaited.push_back(other);
  }
  return awaited;
}

std::int64_t LatestRecord(const JobStatus& context) {
  std::int64_t latest = 0;
  for (const ProcessStatus& status : context.status)
    latest = std::max(latest, status.last_record_us.value_or(0));
  return latest;
}

Result<bool> WasSilentBeforeOthers(const JobStatus& context, const Stop& stop) {
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
