// Ranks that are stuck: of a job that is watched while it runs.
//
// Silence alone is no sign: a compile may be long. A rank is called stuck when it has been inside a
// compile much longer than ranks that finished it took, or inside a phase much longer than any of
// its earlier ones, and silent for longer than it ever was inside a compile.
#include "queries/findings/stuck.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "findings/context.h"

namespace tlparse {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;
// A rank is stuck beyond these multiples of earlier durations, plus a margin for a busy machine.
constexpr std::int64_t kTimesOthers = 3;
constexpr std::int64_t kTimesOwn = 10;
constexpr std::int64_t kTimesSilence = 2;
constexpr std::int64_t kMarginUs = 5 * kSecondUs;

// One rank that may be stuck.
struct Case {
  RankIndex rank = 0;
  const JobCompile* compile = nullptr;
  const ProcessStatus* status = nullptr;
  std::int64_t quiet_us = 0;
  std::int64_t elapsed_us = 0;        // inside the compile
  std::int64_t phase_elapsed_us = 0;  // inside the innermost phase
  std::int64_t longest_us = 0;        // what it is judged by
  std::vector<RankIndex> finished;    // that finished this compile
};

bool IsBackward(const JobCompile& compile) { return compile.status != CompileStatus::kUnfinished; }

// By the other ranks: how long those took that finished the compile.
bool IsStuckByOthers(const FindingContext& context, Case& one) {
  const bool is_backward = IsBackward(*one.compile);
  for (const RankIndex other : context.Others({one.rank})) {
    const std::int32_t index = context.job.CompileOf(other, one.compile->slot);
    if (index < 0) continue;
    const JobCompile& compile = context.job.compiles()[static_cast<std::size_t>(index)];
    const std::int64_t took_us = is_backward ? compile.backward_duration_us : compile.duration_us;
    if (!IsFinished(compile.status) || took_us <= 0) continue;
    one.finished.push_back(other);
    one.longest_us = std::max(one.longest_us, took_us);
  }
  return !one.finished.empty() && one.elapsed_us > kTimesOthers * one.longest_us + kMarginUs;
}

// By the rank itself: how long its earlier phases of that name took.
Result<bool> IsStuckByItself(const FindingContext& context, Case& one) {
  if (one.status->phase.empty()) return false;
  ASSIGN_OR_RETURN(
      const FirstRow<LongestEvent> longest,
      First(Query<LongestEvent>(
          context.database, {.process_id = one.status->process_id, .phase = one.status->phase})));
  if (!longest || !longest->duration_us) return false;
  one.longest_us = static_cast<std::int64_t>(*longest->duration_us);
  return one.phase_elapsed_us > kTimesOwn * one.longest_us + 2 * kMarginUs;
}

// The longest silence of the process so far between two records of one compile.
Result<std::int64_t> LongestSilence(const FindingContext& context, std::int64_t process_id) {
  return context.database.QueryInt(fmt::format(
      "SELECT max(r.us - r.earlier_us) FROM (SELECT local_us AS us, compile_id, "
      "lag(local_us) OVER w AS earlier_us, lag(compile_id) OVER w AS earlier_id FROM record_row "
      "WHERE process_id = {0} AND id BETWEEN (SELECT first_record_id FROM process WHERE id = {0}) "
      "AND (SELECT last_record_id FROM process WHERE id = {0}) WINDOW w AS (ORDER BY id)) r "
      "WHERE r.compile_id = r.earlier_id",
      process_id));
}

void Describe(FindingContext& context, const std::vector<Case>& group, bool by_others) {
  const Case& first = group.front();
  Finding& finding = context.Add(FindingKind::kStuck,
                                 by_others ? FindingSeverity::kError : FindingSeverity::kWarning);
  std::vector<RankIndex> who;
  std::vector<std::int64_t> processes;
  std::int64_t least_us = first.elapsed_us, longest_us = 0, quiet_us = first.quiet_us;
  for (const Case& one : group) {
    who.push_back(one.rank);
    processes.push_back(one.status->process_id);
    least_us = std::min(least_us, by_others ? one.elapsed_us : one.phase_elapsed_us);
    longest_us = std::max(longest_us, one.longest_us);
    quiet_us = std::min(quiet_us, one.quiet_us);
  }
  context.SetRanks(finding, who);
  finding.function = context.FunctionOf(*first.compile);
  finding.compiles = {context.job.string(first.compile->label_id)};
  finding.since_us = first.status->last_record_us;
  const std::string& phase = first.status->phase;
  finding.cause = "no end of " + (phase.empty() ? std::string("the compile") : phase);
  const char* has = who.size() == 1 ? "has" : "have";
  const std::string subject = context.HasRanks() ? context.Who(who) : "The log's process";
  if (by_others) {
    finding.title = fmt::format(
        "{} {} been inside {} for {}{}; {} finished {} in {} at most", subject, has,
        first.status->Title(), SecondsText(least_us), phase.empty() ? "" : ", last in " + phase,
        context.WhoInside(first.finished),
        IsBackward(*first.compile) ? "that backward" : "that compile", SecondsText(longest_us));
  } else {
    finding.title =
        fmt::format("{} {} been in {} of {} for {}; earlier ones took {} at most", subject, has,
                    phase, first.status->Title(), SecondsText(least_us), SecondsText(longest_us));
  }
  finding.detail = fmt::format(
      "No record for {}, longer than ever before inside a compile. The log does not show whether "
      "the process hangs, is slow, or has died.",
      SecondsText(quiet_us));
  if (first.compile->file_id >= 0)
    finding.place =
        FindingPlace{context.job.string(first.compile->file_id), first.compile->line, {}};
  finding.query =
      fmt::format("SELECT * FROM rank_status WHERE process_id IN {}", IdList(processes));
}

}  // namespace

Result<void> FindStuck(FindingContext& context) {
  const LiveJob* const live = context.live;
  if (live == nullptr) return {};
  std::map<std::tuple<bool, std::int32_t, std::string>, std::vector<Case>> groups;
  for (const RankIndex rank : context.All()) {
    Case one;
    one.rank = rank;
    one.status = &context.StatusOf(rank);
    one.compile = context.LastCompile(rank);
    const ProcessStatus& status = *one.status;
    if (status.state != RankState::kCompiling || one.compile == nullptr || one.compile->slot < 0 ||
        !status.last_record_us)
      continue;
    const auto log = live->logs.find(status.log_path);
    if (log == live->logs.end() || log->second.quiet_us < kLeastStuckUs) continue;
    if (log->second.is_removed) continue;  // what the rank writes now is not seen
    one.quiet_us = log->second.quiet_us;
    const std::int64_t last_us = *status.last_record_us;
    one.phase_elapsed_us =
        last_us - std::min(last_us, status.since_us.value_or(last_us)) + one.quiet_us;
    const bool knows_start = one.compile->start_us > 0 && !IsBackward(*one.compile);
    one.elapsed_us = knows_start ? last_us - std::min(last_us, one.compile->start_us) + one.quiet_us
                                 : one.phase_elapsed_us;
    bool by_others = IsStuckByOthers(context, one), by_itself = false;
    if (!by_others && one.finished.empty()) {
      ASSIGN_OR_RETURN(by_itself, IsStuckByItself(context, one));
    }
    if (!by_others && !by_itself) continue;
    ASSIGN_OR_RETURN(const std::int64_t silence_us, LongestSilence(context, status.process_id));
    if (one.quiet_us <= kTimesSilence * silence_us) continue;
    groups[{by_others, one.compile->slot, status.phase}].push_back(std::move(one));
  }
  for (const auto& [key, group] : groups) Describe(context, group, std::get<0>(key));
  return {};
}

bool IsRunning(const StatusAnswer& launch, const LiveJob& live) {
  return std::any_of(launch.rows.begin(), launch.rows.end(), [&](const ProcessStatus& row) {
    const auto log = live.logs.find(row.log_path);
    if (log == live.logs.end()) return false;
    std::int64_t quiet_us = log->second.quiet_us;
    if (!log->second.has_grown && row.last_record_us)
      quiet_us = std::max(quiet_us, live.now_us - *row.last_record_us);
    return quiet_us < kLongSilenceUs;
  });
}

bool IsSettledWhileRunning(FindingKind kind) {
  switch (kind) {
    case FindingKind::kStoppedFirst:
    case FindingKind::kMissingRank:
    case FindingKind::kLateRank:
    case FindingKind::kCollectiveNotReached:
    case FindingKind::kExecutionDivergence:
    case FindingKind::kExtraCompile:
    case FindingKind::kMissingCompile:
    case FindingKind::kSlowRank:
      return false;
    default:
      return true;
  }
}

}  // namespace tlparse
