// Ranks whose first records are later than the others'.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/median.h"
#include "facts/collectives/compile_spans.h"
#include "findings/context.h"

namespace tlparse {
namespace {

// Ranks whose first records are late, by how much at least, and their last records.
struct LateRanks {
  std::vector<RankIndex> who;
  std::int64_t delay_us = INT64_MAX, end_delay_us = INT64_MAX, since_us = INT64_MAX;
  std::optional<std::int64_t> after_us;  // the last compile of the others, which ended before
  std::int64_t waited_us =
      0;  // of the delay, in a collective for others: each of them, half and more
};

// How long before `first_us` the last compile of the ranks that began earlier had ended: one that waits
// for what they compute begins then. Nothing: one of them still compiles, or none did.
Result<std::optional<std::int64_t>> SinceOthersCompiled(const FindingContext& context,
                                                        std::int64_t from_us,
                                                        std::int64_t first_us) {
  ASSIGN_OR_RETURN(
      const std::vector<CompileSpan> compiles,
      CompilesIn(context.database, context.job.run_id(), from_us * 1000, first_us * 1000));
  std::int64_t end_us = INT64_MIN;
  for (const CompileSpan& one : compiles) end_us = std::max(end_us, one.end_ns / 1000);
  return end_us == INT64_MIN || end_us >= first_us ? std::nullopt
                                                   : std::optional(first_us - end_us);
}

// How long a rank waited in a collective for the first of the others, right before its first record, by the
// dumps; 0: in none.
std::int64_t WaitedUs(const IssuedJob& job, std::int64_t rank, std::int64_t from_us,
                      std::int64_t first_us) {
  const std::int64_t from_ns = from_us * 1000, first_ns = first_us * 1000,
                     soon_ns = std::max<std::int64_t>(200'000'000, (first_ns - from_ns) / 100);
  std::int64_t waited_ns = 0;
  for (const IssuedGroup& group : job.groups) {
    for (std::size_t own = 0; own < group.ranks.size(); ++own) {
      if (job.ranks[group.ranks[own]].rank != rank) continue;
      for (const IssuedCollective& call : group.issued[own]) {
        std::int64_t others_ns = INT64_MAX;
        for (std::size_t other = 0; other < group.ranks.size(); ++other) {
          if (other == own) continue;
          for (const IssuedCollective* const one : group.At(other, call.sequence))
            others_ns = std::min(others_ns, one->arrived_ns);
        }
        if (call.arrived_ns > 0 && others_ns > 0 && others_ns <= first_ns &&
            first_ns - others_ns <= soon_ns)
          waited_ns = std::max(waited_ns, others_ns - std::max(call.arrived_ns, from_ns));
      }
    }
  }
  return waited_ns / 1000;
}

void SetWaited(const FindingContext& context, std::int64_t from_us, LateRanks& late) {
  late.waited_us = INT64_MAX;
  for (const RankIndex rank : late.who) {
    const std::int64_t first_us = *context.StatusOf(rank).first_record_us;
    const JobParticipant& one = context.job.participants()[static_cast<std::size_t>(rank)];
    const std::int64_t own_us = WaitedUs(context.issued, *one.rank, from_us, first_us);
    late.waited_us = 2 * own_us < first_us - from_us ? 0 : std::min(late.waited_us, own_us);
  }
}

void AddLateRanks(FindingContext& context, const LateRanks& late, bool is_shifted,
                  FindingSeverity severity) {
  const std::size_t others = context.job.participants().size() - late.who.size();
  if (late.who.empty() || late.who.size() > others || (late.who.size() == others && others > 1))
    return;
  Finding& finding = context.Add(FindingKind::kLateRank, severity);
  context.SetRanks(finding, late.who);
  finding.since_us = late.since_us;
  const bool is_one = late.who.size() == 1;
  const std::string_view at_least = is_one ? "" : "at least ";
  const std::string delay = std::string(at_least) + SecondsText(late.delay_us);
  finding.cause = "first record late";
  if (is_shifted) {
    finding.title = fmt::format(
        "The log{} of {} begin{} {} after those of {} and end{} {}{} after them: the clock "
        "of {} host is ahead, or {} started later",
        is_one ? "" : "s", context.WhoInside(late.who), is_one ? "s" : "", delay,
        others == 1 ? "the other rank" : "most ranks", is_one ? "s" : "", at_least,
        SecondsText(late.end_delay_us), is_one ? "its" : "their", is_one ? "it" : "they");
  } else {
    finding.title =
        fmt::format("{} began to compile {} after {}", context.Who(late.who), delay,
                    others == 1 ? context.WhoInside(context.Others(late.who)) : "most ranks");
    finding.detail = fmt::format(
        "{} that much later than theirs; the log{} not show what the process{} did before.",
        is_one ? "Its first record is" : "Their first records are", is_one ? " does" : "s do",
        is_one ? "" : "es");
    if (late.after_us)
      finding.detail += fmt::format(" {} compiled until {} before: {} may have waited for them.",
                                    others == 1 ? "The other one" : "The others",
                                    SecondsText(*late.after_us), is_one ? "it" : "they");
    if (late.waited_us > 0)
      finding.detail +=
          fmt::format(" By the dumps {} waited {}{} of that for others in a collective.",
                      is_one ? "it" : "they", at_least, SecondsText(late.waited_us));
  }
  finding.query = fmt::format(
      "SELECT process_id, rank, first_record_us, last_record_us "
      "FROM rank_status WHERE run_id = {} AND launch = {} ORDER BY first_record_us DESC",
      context.job.run_id(), context.job.launch());
}

// A rank is late if its first record is, and its last is not. A host whose clock is ahead shifts
// both: of ranks of which both are later, only a shift beyond that of clocks is reported.
constexpr std::int64_t kNoiseUs = 1'000'000;  // of processes that start side by side on one host

Result<void> AddLate(FindingContext& context) {
  if (!context.HasRanks() || context.job.participants().size() < 2) return {};
  std::vector<std::int64_t> firsts, lasts;
  for (const RankIndex rank : context.All()) {
    const ProcessStatus& status = context.StatusOf(rank);
    // The first records of a damaged log may be lost.
    if (!status.first_record_us || !status.last_record_us || context.AreDamaged({rank})) continue;
    firsts.push_back(*status.first_record_us);
    lasts.push_back(*status.last_record_us);
  }
  if (firsts.size() < 2) return {};
  const std::int64_t first = LowerMedian(firsts), last = LowerMedian(lasts);
  // Against how far most first records lie from the median, and how long the job is.
  std::vector<std::int64_t> distances;
  for (const std::int64_t one : firsts) distances.push_back(std::abs(one - first));
  const std::int64_t spread = LowerMedian(distances),
                     length = std::max<std::int64_t>(last - first, 0);
  constexpr std::int64_t kTimesSpread = 5, kShareOfJob = 10, kBeyondClocksUs = 120'000'000;
  const std::int64_t least_us = std::max({kTimesSpread * spread, length / kShareOfJob, kNoiseUs});
  LateRanks late, shifted;
  for (const RankIndex rank : context.All()) {
    const ProcessStatus& status = context.StatusOf(rank);
    const JobParticipant& one = context.job.participants()[static_cast<std::size_t>(rank)];
    if (!status.first_record_us || !status.last_record_us || !one.rank || one.is_extra_log ||
        context.AreDamaged({rank}))
      continue;
    const std::int64_t own = *status.first_record_us - first;
    const std::int64_t end = *status.last_record_us - last;
    const bool is_shifted = end > own / 2;
    // Of two logs that one ends before the other begins says nothing.
    if (firsts.size() == 2 && own >= length) continue;
    if (own < least_us || (is_shifted && own < kBeyondClocksUs)) continue;
    LateRanks& group = is_shifted ? shifted : late;
    group.who.push_back(rank);
    group.delay_us = std::min(group.delay_us, own);
    group.end_delay_us = std::min(group.end_delay_us, end);
    group.since_us = std::min(group.since_us, *status.first_record_us);
  }
  // What it cost the others is not known without dumps: it is a warning where it is a large part.
  bool is_large = late.delay_us >= length / 4;
  if (is_large && !late.who.empty()) {
    ASSIGN_OR_RETURN(late.after_us, SinceOthersCompiled(context, first, late.since_us));
    constexpr std::int64_t kShareOfDelay = 100;
    if (late.after_us.value_or(INT64_MAX) > std::max(kNoiseUs / 5, late.delay_us / kShareOfDelay))
      late.after_us.reset();
    SetWaited(context, first, late);
    if (late.after_us || late.waited_us > 0) is_large = false;
  }
  AddLateRanks(context, late, false, is_large ? FindingSeverity::kWarning : FindingSeverity::kNote);
  AddLateRanks(context, shifted, true, FindingSeverity::kWarning);
  return {};
}

}  // namespace

Result<void> FindLateRanks(FindingContext& context) { return AddLate(context); }

}  // namespace tlparse
