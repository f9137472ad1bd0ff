// Ranks that compiled for longer than the others.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/plural.h"
#include "findings/context.h"

namespace tlparse {
namespace {

// "38.4 s", "1.0 to 2.1 s"
std::string RangeOfSeconds(double least, double most) {
  const std::string a = fmt::format("{:.1f}", least), b = fmt::format("{:.1f}", most);
  return a == b ? a + " s" : fmt::format("{} to {} s", a, b);
}

// The time of a rank's compiles that none of the others has.
double SecondsAlone(const FindingContext& context, RankIndex rank) {
  double seconds = 0;
  const std::vector<RankIndex> others = context.Others({rank});
  for (std::size_t i = 0; i < context.job.slots().size(); ++i) {
    const auto slot = static_cast<std::int32_t>(i);
    const std::int32_t own = context.job.CompileOf(rank, slot);
    if (own < 0 || std::any_of(others.begin(), others.end(), [&](RankIndex other) {
          return context.job.CompileOf(other, slot) >= 0;
        }))
      continue;
    seconds += context.job.compiles()[static_cast<std::size_t>(own)].Seconds().value_or(0);
  }
  return seconds;
}

// A cold cache, another configuration or more recompiles on the same ranks explain the longer compile
// time: it becomes evidence of that finding. Where the time is that of a function which only
// this rank compiles, it is a note.
void AddSlow(FindingContext& context, Finding finding, bool is_alone) {
  for (Finding& other : context.findings) {
    // Of two ranks neither is the odd one.
    const bool is_of_pair =
        other.kind == FindingKind::kMissingCompile && context.job.participants().size() == 2;
    const bool is_extra = other.kind == FindingKind::kExtraCompile || is_of_pair;
    const bool are_its = is_of_pair || (!finding.ranks.empty() &&
                                        std::includes(other.ranks.begin(), other.ranks.end(),
                                                      finding.ranks.begin(), finding.ranks.end()));
    if (is_alone && is_extra && are_its) {
      const bool is_recompiled = !other.cause.empty();
      if (is_recompiled && !other.is_asked_for)
        other.severity = std::min(other.severity, finding.severity);
      else
        finding.severity = FindingSeverity::kNote;
      other.evidence.push_back(std::move(finding));
      return;
    }
    const bool explains = is_extra || other.kind == FindingKind::kColdCache ||
                          other.kind == FindingKind::kConfigDivergence ||
                          other.kind == FindingKind::kInputDivergence ||
                          other.kind == FindingKind::kGraphBreakDivergence ||
                          other.kind == FindingKind::kRecompileLimit;
    if (explains && other.severity != FindingSeverity::kNote && are_its) {
      other.evidence.push_back(std::move(finding));
      return;
    }
  }
  context.findings.push_back(std::move(finding));
}

// The compile that made a rank slow: its place, and whether the others' logs end while it ran.
void AddSlowCompile(const FindingContext& context, const JobCompile& compile, Finding& finding) {
  if (compile.file_id >= 0)
    finding.place = FindingPlace{context.job.string(compile.file_id), compile.line, {}};
  if (compile.start_us == 0 || context.live != nullptr) return;
  finding.since_us = compile.start_us;
  const std::int64_t end_us = compile.start_us + compile.duration_us;
  const std::vector<RankIndex> others = context.Others({compile.participant});
  const bool end_meanwhile = std::all_of(others.begin(), others.end(), [&](RankIndex other) {
    const std::optional<std::int64_t> last_us = context.StatusOf(other).last_record_us;
    return last_us && *last_us > compile.start_us && *last_us < end_us && !context.IsCut(other);
  });
  if (!end_meanwhile || others.empty()) return;
  finding.detail +=
      fmt::format("{}{} {} during that compile: whether {} waited for it to the end is not in {}.",
                  finding.detail.empty() ? "" : " ",
                  others.size() == 1 ? "The log of " + context.WhoInside(others)
                                     : "The logs of " + context.WhoInside(others),
                  others.size() == 1 ? "ends" : "end", others.size() == 1 ? "it" : "they",
                  others.size() == 1 ? "it" : "them");
}

// Of half of the ranks or more there is no log: the times of the others do not show what is usual.
bool AreFew(const FindingContext& context) {
  const std::vector<JobParticipant>& all = context.job.participants();
  const auto count = std::count_if(all.begin(), all.end(),
                                   [](const JobParticipant& one) { return one.rank.has_value(); });
  return 2 * count <= context.ranks.world_size;
}

// Whether a rank's log is cut off inside that compile, or its backward: what it took is not known.
bool IsCutInside(const FindingContext& context, RankIndex one, std::int32_t slot) {
  const JobCompile* const last = context.LastCompile(one);
  return context.IsCut(one) && last != nullptr && last->slot == slot;
}

// One compile that took one rank much longer, where its sum is not that of a slow rank.
void AddStalled(FindingContext& context, const StalledCompile& stalled) {
  if (!context.job.participants()[static_cast<std::size_t>(stalled.rank)].rank) return;
  const std::vector<RankIndex> others = context.Others({stalled.rank});
  if (std::all_of(others.begin(), others.end(), [&](RankIndex one) {
        return context.job.CompileOf(one, stalled.slot) < 0 ||
               IsCutInside(context, one, stalled.slot);
      }))
    return;
  Finding finding;
  finding.kind = FindingKind::kSlowRank;
  finding.severity = AreFew(context) ? FindingSeverity::kNote : FindingSeverity::kWarning;
  finding.launch = context.job.launch();
  context.SetRanks(finding, {stalled.rank});
  const std::string where = context.SetCompiles(finding, {stalled.slot}, {stalled.rank});
  finding.title = fmt::format(
      "{} took {} to compile {}, {} other{} {}", context.Who({stalled.rank}),
      RangeOfSeconds(stalled.own_s, stalled.own_s), where, stalled.others_count,
      PluralS(stalled.others_count), RangeOfSeconds(stalled.others_least_s, stalled.others_most_s));
  if (!stalled.reason.empty()) finding.detail = fmt::format("{}.", stalled.reason);
  finding.cause = "compile time above the others'";
  const std::int32_t index = context.job.CompileOf(stalled.rank, stalled.slot);
  const JobCompile& compile = context.job.compiles()[static_cast<std::size_t>(index)];
  AddSlowCompile(context, compile, finding);
  finding.query = fmt::format("SELECT * FROM compile_history WHERE compile_id = {}", compile.id);
  AddSlow(context, std::move(finding), false);
}

void SayWhoWentFirst(const FindingContext& context, const SlowestRank& slowest, Finding& finding) {
  if (!slowest.AreFirst()) {
    if (!slowest.went_first.empty())
      finding.detail +=
          fmt::format("{}Not counted: {}, which had compiled before the others began theirs.",
                      finding.detail.empty() ? "" : " ", context.WhoInside(slowest.went_first));
    return;
  }
  const bool is_one = slowest.slow.size() == 1;
  finding.detail += fmt::format(
      "{}{} had finished {} compiles before the others began theirs, as where one rank fills the "
      "caches for the "
      "others.",
      finding.detail.empty() ? "" : " ", is_one ? "It" : "Each of them", is_one ? "these" : "its");
}

}  // namespace

Result<void> FindSlowRanks(FindingContext& context) {
  if (!context.HasRanks() || !context.ranks.slowest) return {};
  const SlowestRank& slowest = *context.ranks.slowest;
  std::vector<RankIndex> slow = slowest.slow;
  std::erase_if(slow, [&](RankIndex one) {
    return !context.job.participants()[static_cast<std::size_t>(one)].rank;
  });
  const std::optional<StalledCompile>& stalled = context.ranks.stalled;
  if (stalled && !std::binary_search(slow.begin(), slow.end(), stalled->rank))
    AddStalled(context, *stalled);
  if (slow.empty() || slowest.others_count == 0) return {};
  // Those that failed did not compile to the end; what those did is not known whose logs lack records.
  const std::vector<RankIndex> others = context.Others(slow);
  if (std::all_of(others.begin(), others.end(), [&](RankIndex one) {
        return context.StatusOf(one).state == RankState::kFailed ||
               context.ranks.damage.AnyIsIncomplete({one});
      }))
    return {};
  const double excess = slowest.compile_s - slowest.lower_median_s;
  Finding finding;
  finding.kind = FindingKind::kSlowRank;
  finding.severity = slowest.compile_s >= 2 * slowest.lower_median_s && excess >= 10 &&
                             !AreFew(context) && !slowest.AreFirst()
                         ? FindingSeverity::kWarning
                         : FindingSeverity::kNote;
  finding.needs_no_role = slowest.is_of_one_event && slow.size() == 1;
  finding.launch = context.job.launch();
  context.SetRanks(finding, slow);
  finding.title = fmt::format("{} compiled for {}{}, {} other{} for {}", context.Who(slow),
                              slowest.is_at_least ? "at least " : "",
                              RangeOfSeconds(slowest.slow_least_s, slowest.compile_s),
                              slowest.others_count, PluralS(slowest.others_count),
                              RangeOfSeconds(slowest.others_least_s, slowest.others_most_s));
  if (slowest.IsMostInOne())
    finding.detail = fmt::format("Most of the difference{} in {} ({:.1f} s more){}{}.",
                                 slow.size() == 1 ? "" : " of " + context.WhoInside({slowest.rank}),
                                 slowest.compile, slowest.compile_excess_s,
                                 slowest.reason.empty() ? "" : ": ", slowest.reason);
  if (slow.size() == 1 && slowest.compared_count > 1 && slowest.least_times >= 1.5)
    finding.detail += fmt::format(
        "{}Each of its {} compiles of 0.1 s and more took {:.1f} to {:.1f} times the median of the "
        "ranks, as where a processor is slower or has other work.",
        finding.detail.empty() ? "" : " ", slowest.compared_count, slowest.least_times,
        slowest.most_times);
  if (slow.size() == 1 && slowest.IsMostInOne() && slowest.rank == slow.front()) {
    context.SetCompiles(finding, {slowest.slot}, slow);
    const std::int32_t index = context.job.CompileOf(slowest.rank, slowest.slot);
    AddSlowCompile(context, context.job.compiles()[static_cast<std::size_t>(index)], finding);
  }
  SayWhoWentFirst(context, slowest, finding);
  finding.cause = "compile time above the median";
  finding.query = fmt::format(
      "SELECT process_id, rank, compile_us FROM rank_summary WHERE {} ORDER BY compile_us DESC",
      context.OfLaunch());
  AddSlow(context, std::move(finding),
          slow.size() == 1 && 2 * SecondsAlone(context, slow.front()) >= excess);
  return {};
}

}  // namespace tlparse
