// Collectives that ranks really issued: not reached, another op, another call, stuck.
#include "findings/issued_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "facts/collectives/issued.h"
#include "facts/collectives/issued_group.h"
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

// Whether a finding about the compiles of these ranks, or about their start, explains that they came
// late to a collective.
bool ExplainsDelay(const Finding& earlier, const Finding& late, const LateArrival& arrival) {
  if (earlier.ranks != late.ranks || earlier.logs != late.logs) return false;
  switch (earlier.kind) {
    case FindingKind::kLateRank:
      return arrival.is_first;
    case FindingKind::kConfigDivergence:
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
  const std::string& next = earlier.ends_before;
  if (next.empty() || finding.title.find(next) != std::string::npos) return;
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

Finding FindingOfIssued(const FindingContext& context, const IssuedJob& job,
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
  finding.query = problem.query.empty() ? QueryOf(problem) : problem.query;
  return finding;
}

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
    Finding finding = FindingOfIssued(context, job, problem);
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

Result<void> FindLateAtCollectives(FindingContext& context) {
  RETURN_IF_ERROR(FindStragglers(context));
  ASSIGN_OR_RETURN(const std::vector<LateArrival> arrivals,
                   FindLateArrivals(context.database, context.issued));
  const std::size_t earlier_count = context.findings.size();
  for (const LateArrival& arrival : arrivals) {
    Finding finding = FindingOfIssued(context, context.issued, arrival.finding);
    const auto end = context.findings.begin() + static_cast<std::ptrdiff_t>(earlier_count);
    const auto explanation = std::find_if(
        context.findings.begin(), end,
        [&](const Finding& earlier) { return ExplainsDelay(earlier, finding, arrival); });
    (explanation != end ? explanation->evidence : context.findings).push_back(std::move(finding));
  }
  return {};
}

}  // namespace tlparse
