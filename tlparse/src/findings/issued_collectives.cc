// Collectives that ranks really issued: not reached, another op, another call, stuck.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "facts/collectives/issued.h"
#include "facts/collectives/issued_group.h"
#include "facts/collectives/receives.h"
#include "facts/collectives/stragglers.h"
#include "findings/context.h"

namespace tlparse {
namespace {

// The rows behind it.
std::string QueryOf(const CollectiveFinding& problem) {
  std::string group;
  for (const char c : problem.group) group += c == '\'' ? std::string("''") : std::string(1, c);
  return "SELECT id, rank, op, input_shapes, dtype, reduce_op, state, start_us, graph_id, file, "
         "line "
         "FROM collective_run WHERE group_name = '" +
         group + "' AND sequence_number = " + std::to_string(problem.sequence) +
         (problem.is_p2p ? " AND is_p2p = 1" : "") + " AND peer_id IS NULL ORDER BY rank";
}

bool IsOfSchedules(FindingKind kind) {
  return kind == FindingKind::kCollectiveDivergence || kind == FindingKind::kCodeDivergence ||
         kind == FindingKind::kGraphDivergence;
}

// Ranks that compiled something else, and that issued something else outside of compiled code: one
// of the two may follow from the other.
bool IsSameOddity(const Finding& earlier, const Finding& now) {
  const bool is_divergence =
      IsOfSchedules(earlier.kind) || earlier.kind == FindingKind::kInputDivergence ||
      earlier.kind == FindingKind::kExtraCompile || earlier.kind == FindingKind::kMissingCompile ||
      earlier.kind == FindingKind::kGraphBreakDivergence;
  return is_divergence && earlier.severity != FindingSeverity::kNote && !now.ranks.empty() &&
         earlier.ranks == now.ranks && now.severity == FindingSeverity::kError &&
         now.compiles.empty();
}

// Two ranks whose tensors have other sizes, of which one was given these sizes when it compiled,
// unlike most: that one is the odd one.
bool ExplainsSizes(const Finding& earlier, const Finding& now, std::size_t known_ranks) {
  constexpr std::string_view kSize = ": size ", kArrow = " → ";
  if (earlier.kind != FindingKind::kInputDivergence || earlier.ranks.size() != 1 ||
      now.kind != FindingKind::kCollectiveDivergence || now.severity != FindingSeverity::kError ||
      known_ranks != 2 || earlier.ranks == now.ranks)
    return false;
  const std::size_t size = earlier.cause.find(kSize);
  const std::size_t arrow = earlier.cause.find(kArrow, size);
  if (size == std::string::npos || arrow == std::string::npos) return false;
  std::string own = earlier.cause.substr(arrow + kArrow.size());
  own = own.substr(0, own.find(']') + 1);
  return !own.empty() && now.detail.find(own) != std::string::npos;
}

// Where the schedules know no majority, a finding of theirs names both sides; what was issued may
// name one of them.
bool IsSameCause(const Finding& earlier, const Finding& now) {
  const bool is_of_all = earlier.ranks.empty() && earlier.logs.empty();
  const bool is_among_its_ranks =
      earlier.ranks == now.ranks || (is_of_all && !now.ranks.empty()) ||
      (!now.ranks.empty() && std::includes(earlier.ranks.begin(), earlier.ranks.end(),
                                           now.ranks.begin(), now.ranks.end()));
  return IsOfSchedules(earlier.kind) && now.kind == FindingKind::kCollectiveDivergence &&
         is_among_its_ranks && !now.compiles.empty() &&
         std::find(earlier.compiles.begin(), earlier.compiles.end(), now.compiles.front()) !=
             earlier.compiles.end();
}

// A schedule that differs explains that its collectives were issued in another order, if nothing
// hangs: the earlier finding names the rank that differs.
bool Explains(const Finding& earlier, const Finding& now) {
  return now.severity == FindingSeverity::kNote && IsOfSchedules(earlier.kind) &&
         !now.compiles.empty() && !earlier.ranks.empty() &&
         std::includes(now.ranks.begin(), now.ranks.end(), earlier.ranks.begin(),
                       earlier.ranks.end()) &&
         std::find(earlier.compiles.begin(), earlier.compiles.end(), now.compiles.front()) !=
             earlier.compiles.end();
}

bool IsEndOf(const Finding& earlier, const std::vector<std::int64_t>& ranks) {
  return (earlier.kind == FindingKind::kCompileFailed ||
          earlier.kind == FindingKind::kStoppedFirst) &&
         !ranks.empty() &&
         std::includes(earlier.ranks.begin(), earlier.ranks.end(), ranks.begin(), ranks.end());
}

// Whether the log of each of these ranks ends inside a compile, or that failed: what the rank issues
// after it is not reached.
bool EndInside(const FindingContext& context, const std::vector<std::int64_t>& ranks) {
  for (const RankIndex one : context.All()) {
    const std::optional<std::int64_t>& rank =
        context.job.participants()[static_cast<std::size_t>(one)].rank;
    const RankState state = context.StatusOf(one).state;
    if (rank && std::binary_search(ranks.begin(), ranks.end(), *rank) &&
        state != RankState::kCompiling && state != RankState::kFailed)
      return false;
  }
  return true;
}

// The finding that explains it, itself or by its evidence; nullptr: none.
Finding* Explanation(FindingContext& context, const Finding& now, std::size_t known_ranks) {
  const bool is_cut_off =
      now.kind == FindingKind::kCollectiveNotReached && EndInside(context, now.ranks);
  for (Finding& earlier : context.findings) {
    if (is_cut_off && IsEndOf(earlier, now.ranks)) return &earlier;
    if (ExplainsSizes(earlier, now, known_ranks) || Explains(earlier, now) ||
        std::any_of(earlier.evidence.begin(), earlier.evidence.end(),
                    [&](const Finding& evidence) { return Explains(evidence, now); }))
      return &earlier;
  }
  return nullptr;
}

Finding FindingOf(const FindingContext& context, const IssuedJob& job,
                  const CollectiveFinding& problem) {
  Finding finding;
  finding.kind = problem.kind;
  finding.severity = problem.severity;
  finding.title = problem.title;
  finding.detail = problem.detail;
  finding.launch = context.job.launch();
  for (const std::size_t index : problem.ranks) {
    const IssuingRank& rank = job.ranks[index];
    rank.rank ? finding.ranks.push_back(*rank.rank) : finding.logs.push_back(rank.name);
  }
  std::sort(finding.ranks.begin(), finding.ranks.end());
  finding.rank_count = problem.ranks.empty() ? job.known_ranks : problem.ranks.size();
  if (!problem.label.empty()) finding.compiles.push_back(problem.label);
  finding.since_us = problem.since_us;
  if (!problem.file.empty()) finding.place = FindingPlace{problem.file, problem.line, {}};
  finding.cause = problem.cause;
  finding.suggestion = problem.advice;
  finding.function = problem.function;
  finding.query = QueryOf(problem);
  return finding;
}

// Whether a finding about the compiles of these ranks, or about their start, explains that they came
// late to a collective.
bool ExplainsDelay(const Finding& earlier, const Finding& late, const LateArrival& arrival) {
  if (earlier.ranks != late.ranks || earlier.logs != late.logs) return false;
  switch (earlier.kind) {
    case FindingKind::kLateRank:
      return arrival.is_first;
    case FindingKind::kColdCache:
    case FindingKind::kCacheBypassed:
    case FindingKind::kExtraCompile:
    case FindingKind::kRecompiles:
    case FindingKind::kSlowRank:
      return arrival.has_compiled;
    default:
      return false;
  }
}

// Adds to a finding about a rank for which others wait that its log ends before a function which
// the others compiled: they may wait in a later one.
void SayWhereLogEnds(const FindingContext& context, const Finding& earlier, Finding& finding) {
  if (earlier.kind != FindingKind::kStoppedFirst || !earlier.cause.starts_with(kLogEndsBefore))
    return;
  const std::string next = earlier.cause.substr(kLogEndsBefore.size());
  if (finding.title.find(next) != std::string::npos) return;
  std::vector<RankIndex> who;
  for (const RankIndex one : context.All()) {
    const auto& rank = context.job.participants()[static_cast<std::size_t>(one)].rank;
    if (rank && std::binary_search(earlier.ranks.begin(), earlier.ranks.end(), *rank))
      who.push_back(one);
  }
  const std::string name = context.WhoInside(who);
  finding.title += who.size() == 1 ? fmt::format("; {}'s log ends before {}", name, next)
                                   : fmt::format("; the logs of {} end before {}", name, next);
}

// A rank that had not reached a collective; nullptr: there is none.
Finding* NotReached(std::vector<Finding>& findings) {
  const auto found = std::find_if(findings.begin(), findings.end(), [](const Finding& one) {
    return one.kind == FindingKind::kCollectiveNotReached;
  });
  return found == findings.end() ? nullptr : &*found;
}

RankIndex ParticipantOf(const FindingContext& context, const IssuingRank& rank) {
  for (const RankIndex one : context.All()) {
    const JobParticipant& participant = context.job.participants()[static_cast<std::size_t>(one)];
    if (rank.rank && participant.rank == rank.rank && !participant.is_extra_log) return one;
  }
  return -1;
}

// Where two ranks differ and no other has a dump, the logs of the others may show on whose side they
// are: by a compile that one of the two made between this call and the one before.
void SayOddByLogs(const FindingContext& context, const CollectiveFinding& problem,
                  Finding& finding) {
  const IssuedJob& issued = context.issued;
  const std::size_t count = context.job.participants().size();
  if (problem.kind != FindingKind::kCollectiveDivergence || problem.ranks.size() != 2 ||
      issued.known_ranks != 2 || count < 3)
    return;
  const RankIndex pair[] = {ParticipantOf(context, issued.ranks[problem.ranks[0]]),
                            ParticipantOf(context, issued.ranks[problem.ranks[1]])};
  const auto group =
      std::find_if(issued.groups.begin(), issued.groups.end(),
                   [&](const IssuedGroup& one) { return one.name == problem.group; });
  if (pair[0] < 0 || pair[1] < 0 || group == issued.groups.end()) return;
  for (const std::int32_t slot : context.job.slot_order()) {
    std::vector<RankIndex> having = context.All();
    std::erase_if(having, [&](RankIndex one) { return context.job.CompileOf(one, slot) < 0; });
    const bool has_first = context.job.CompileOf(pair[0], slot) >= 0;
    if (has_first == (context.job.CompileOf(pair[1], slot) >= 0) || 2 * having.size() == count)
      continue;
    const std::size_t with = has_first ? 0 : 1;
    const JobCompile& compile =
        context.job.compiles()[static_cast<std::size_t>(context.job.CompileOf(pair[with], slot))];
    std::int64_t before_ns = 0, call_ns = 0;
    for (std::size_t i = 0; i < group->ranks.size(); ++i) {
      for (const IssuedCollective& one : group->issued[i]) {
        if (group->ranks[i] != problem.ranks[with] || one.sequence > problem.sequence) continue;
        (one.sequence == problem.sequence ? call_ns : before_ns) = one.start_ns;
      }
    }
    if (compile.start_us < before_ns / 1000 || compile.start_us > call_ns / 1000) continue;
    const std::vector<RankIndex> lacking = context.Others(having);
    finding.title +=
        fmt::format("; before it {} compiled {}, {} did not", context.WhoInside(having),
                    context.Title(compile), context.WhoInside(lacking));
    finding.ranks = {
        *issued.ranks[problem.ranks[2 * having.size() > count ? 1 - with : with]].rank};
    finding.rank_count = 1;
    return;
  }
}

}  // namespace

Result<void> FindIssuedCollectives(FindingContext& context) {
  ASSIGN_OR_RETURN(context.issued,
                   LoadIssued(context.database, context.job.run_id(), context.job.launch()));
  const IssuedJob& job = context.issued;
  ASSIGN_OR_RETURN(std::vector<CollectiveFinding> problems,
                   FindIssuedProblems(context.database, job));
  // Ranks that may wait themselves come after those of which nothing says so.
  std::stable_partition(problems.begin(), problems.end(),
                        [](const CollectiveFinding& one) { return !one.may_wait_elsewhere; });
  for (const CollectiveFinding& problem : problems) {
    Finding finding = FindingOf(context, job, problem);
    SayOddByLogs(context, problem, finding);
    Finding* explanation = Explanation(context, finding, job.known_ranks);
    if (explanation == nullptr && problem.may_wait_elsewhere)
      explanation = NotReached(context.findings);
    if (explanation != nullptr) {
      explanation->severity = std::min(explanation->severity, finding.severity);
      explanation->evidence.push_back(std::move(finding));
      continue;
    }
    // A finding of the schedules with the same cause becomes evidence, and one that says no more than
    // that the log of such a rank ends before the others'.
    const auto is_part = [&](const Finding& earlier) {
      return IsSameCause(earlier, finding) || IsSameOddity(earlier, finding) ||
             (finding.kind == FindingKind::kCollectiveNotReached &&
              earlier.kind == FindingKind::kStoppedFirst && earlier.ranks == finding.ranks);
    };
    for (auto earlier = context.findings.begin(); earlier != context.findings.end();) {
      if (!is_part(*earlier)) {
        ++earlier;
        continue;
      }
      SayWhereLogEnds(context, *earlier, finding);
      finding.evidence.push_back(std::move(*earlier));
      earlier = context.findings.erase(earlier);
    }
    context.findings.push_back(std::move(finding));
  }
  return {};
}

namespace {

// Of one receive after another, all others waited in theirs.
Result<void> AddReceiveWait(FindingContext& context) {
  std::set<std::int64_t> ranks;
  for (const JobParticipant& one : context.job.participants()) {
    if (one.rank) ranks.insert(*one.rank);
  }
  if (context.launches.size() > 1) return {};
  ASSIGN_OR_RETURN(const std::optional<ReceiveWait> found,
                   FindReceiveWait(context.database, context.job.run_id(), ranks));
  if (!found) return {};
  const auto seconds = [](std::int64_t ns) { return SecondsText(ns / 1000); };
  Finding& finding = context.Add(FindingKind::kStraggler, FindingSeverity::kWarning);
  finding.launch = context.job.launch();
  finding.ranks = {found->rank};
  finding.rank_count = 1;
  const bool is_one = found->waiting.size() == 1;
  finding.title = fmt::format(
      "{} {} {} in receives for rank {}: {} times, {} at the median, {} in all; {} of that it was "
      "in {}",
      is_one ? "Rank" : "Ranks", FormatRankRanges(found->waiting), is_one ? "waits" : "wait",
      found->rank, found->count, seconds(found->median_ns), seconds(found->lost_ns),
      seconds(found->activity_ns), found->activity);
  finding.detail = fmt::format(
      "By the profiles of all ranks, which cover {} together: in that time {} inside receives and "
      "rank {} was not. Its own work in a pipeline is part of it.",
      seconds(found->span_ns), is_one ? "the other rank was" : "all other ranks were", found->rank);
  finding.cause = "others wait in receives";
  finding.since_us = found->since_ns / 1000;
  finding.suggestion =
      fmt::format("look at what rank {} does in {} before it sends", found->rank, found->activity);
  finding.query = fmt::format(
      "SELECT a.id, p.rank, a.name, a.start_us, a.duration_us FROM annotation a JOIN profile p "
      "ON p.id = a.profile_id WHERE p.run_id = {} AND a.name = 'gloo:recv' ORDER BY a.start_us",
      context.job.run_id());
  return {};
}

// Of one collective after another the same rank was the last.
Result<void> AddStraggler(FindingContext& context) {
  const IssuedJob& job = context.issued;
  ASSIGN_OR_RETURN(const std::optional<Straggler> found, FindStraggler(context.database, job));
  if (!found) return AddReceiveWait(context);
  const std::string rank = RanksText(job, {found->rank});
  const auto seconds = [](std::int64_t ns) {
    return ns < 10'000'000 ? fmt::format("{:.1f} ms", static_cast<double>(ns) / 1e6)
                           : SecondsText(ns / 1000);
  };
  const bool are_all = found->long_count == found->last_count;
  CollectiveFinding problem;
  problem.kind = FindingKind::kStraggler;
  problem.severity = FindingSeverity::kWarning;
  problem.title = fmt::format(
      "{} wait{} for {}: it came last to {} of {} collectives of {}, {} after the others, {} in "
      "all{}",
      Capital(RanksText(job, found->waiting)), found->waiting.size() == 1 ? "s" : "", rank,
      found->last_count, found->count, found->group->Title(),
      are_all
          ? fmt::format("{}{}", found->is_at_least ? "at least " : "", seconds(found->median_ns))
          : fmt::format("to {} of them {} or more", found->long_count, seconds(found->least_ns)),
      seconds(found->lost_ns), found->compiled_ns > 0 ? ", its compiles not counted" : "");
  problem.detail = fmt::format(
      "{}; {} pass from the first of the {} to the last{}. The call with {} median delay is {}.",
      are_all ? fmt::format("{} is the median", seconds(found->median_ns))
              : fmt::format("{} of it were lost in {}", seconds(found->long_ns),
                            found->long_count == 1 ? std::string("one")
                                                   : fmt::format("these {}", found->long_count)),
      seconds(found->span_ns), found->count,
      found->job_compiled_ns > 0
          ? fmt::format(", {} of it in compiles", seconds(found->job_compiled_ns))
          : std::string(),
      are_all ? "the" : "their", found->call->Title());
  if (!found->activity.empty())
    problem.detail += fmt::format(
        " Of the {}{}, {} was {} in {}.", seconds(found->profiled_ns),
        found->profiled_ns < found->lost_ns ? " that its profile covers" : ", by its profile", rank,
        seconds(found->activity_ns), found->activity);
  if (found->compiled_ns > 0)
    problem.detail += fmt::format(" Not counted are {} in which {} compiled meanwhile.",
                                  seconds(found->compiled_ns), rank);
  problem.ranks = {found->rank};
  SetPlace(problem, *found->group, *found->call);
  problem.cause = "last at collectives";
  const std::string before =
      found->call->Place().empty() ? found->call->PrintedOp() : found->call->Place();
  problem.advice =
      found->activity.empty()
          ? fmt::format(
                "look at what {} does before {} that the others do not: its loader, its share "
                "of the data, a recompile, its processor",
                rank, before)
          : fmt::format("look at why {} takes longer in {}, before {}, than the others", rank,
                        found->activity, before);
  Finding finding = FindingOf(context, job, problem);
  const auto error =
      std::find_if(context.findings.begin(), context.findings.end(), [&](const Finding& earlier) {
        return earlier.severity == FindingSeverity::kError && earlier.ranks == finding.ranks;
      });
  (error != context.findings.end() ? error->evidence : context.findings)
      .push_back(std::move(finding));
  return {};
}

}  // namespace

Result<void> FindLateAtCollectives(FindingContext& context) {
  RETURN_IF_ERROR(AddStraggler(context));
  ASSIGN_OR_RETURN(const std::vector<LateArrival> arrivals,
                   FindLateArrivals(context.database, context.issued));
  const std::size_t earlier_count = context.findings.size();
  for (const LateArrival& arrival : arrivals) {
    Finding finding = FindingOf(context, context.issued, arrival.finding);
    const auto end = context.findings.begin() + static_cast<std::ptrdiff_t>(earlier_count);
    const auto explanation = std::find_if(
        context.findings.begin(), end,
        [&](const Finding& earlier) { return ExplainsDelay(earlier, finding, arrival); });
    (explanation != end ? explanation->evidence : context.findings).push_back(std::move(finding));
  }
  return {};
}

}  // namespace tlparse
