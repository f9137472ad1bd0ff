// A rank for which the others wait again and again, in collectives or in receives.
#include "facts/collectives/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/plural.h"
#include "facts/collectives/issued_group.h"
#include "facts/collectives/receives.h"
#include "findings/issued_collectives.h"

namespace tlparse {
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

std::string DelayText(std::int64_t ns) {
  return ns < 10'000'000 ? fmt::format("{:.1f} ms", static_cast<double>(ns) / 1e6)
                         : SecondsText(ns / 1000);
}

std::string TitleOfStraggler(const IssuedJob& job, const Straggler& found,
                             const std::string& rank) {
  const bool are_all = found.long_count == found.last_count;
  return fmt::format(
      "{} wait{} for {}: it came last to {} of {} collectives of {}, {} after the others, {} in "
      "all{}",
      Capital(RanksText(job, found.waiting)), VerbS(found.waiting.size()), rank, found.last_count,
      found.count, found.group->Title(),
      are_all
          ? fmt::format("{}{}", found.is_at_least ? "at least " : "", DelayText(found.median_ns))
          : fmt::format("to {} of them {} or more", found.long_count, DelayText(found.least_ns)),
      DelayText(found.lost_ns), found.compiled_ns > 0 ? ", its compiles not counted" : "");
}

std::string DetailOfStraggler(const Straggler& found, const std::string& rank) {
  const bool are_all = found.long_count == found.last_count;
  std::string text = fmt::format(
      "{}; {} pass from the first of the {} to the last{}. The call with {} median delay is {}.",
      are_all ? fmt::format("{} is the median", DelayText(found.median_ns))
              : fmt::format("{} of it were lost in {}", DelayText(found.long_ns),
                            found.long_count == 1 ? std::string("one")
                                                  : fmt::format("these {}", found.long_count)),
      DelayText(found.span_ns), found.count,
      found.job_compiled_ns > 0
          ? fmt::format(", {} of it in compiles", DelayText(found.job_compiled_ns))
          : std::string(),
      are_all ? "the" : "their", found.call->Title());
  if (!found.activity.empty())
    text +=
        fmt::format(" Of the {}{}, {} was {} in {}.", DelayText(found.profiled_ns),
                    found.profiled_ns < found.lost_ns ? " of these delays that its profile covers"
                                                      : ", by its profile",
                    rank, DelayText(found.activity_ns), found.activity);
  if (found.has_barriers) text += " Barriers are not counted.";
  if (found.compiled_ns > 0)
    text += fmt::format(" Not counted are {} in which {} compiled meanwhile.",
                        DelayText(found.compiled_ns), rank);
  return text;
}

}  // namespace

Result<void> FindStragglers(FindingContext& context) {
  const IssuedJob& job = context.issued;
  ASSIGN_OR_RETURN(const std::optional<Straggler> found, FindStraggler(context.database, job));
  if (!found) return AddReceiveWait(context);
  const std::string rank = RanksText(job, {found->rank});
  CollectiveFinding problem;
  problem.kind = FindingKind::kStraggler;
  problem.severity = FindingSeverity::kWarning;
  problem.title = TitleOfStraggler(job, *found, rank);
  problem.detail = DetailOfStraggler(*found, rank);
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
  Finding finding = FindingOfIssued(context, job, problem);
  const auto error =
      std::find_if(context.findings.begin(), context.findings.end(), [&](const Finding& earlier) {
        return earlier.severity == FindingSeverity::kError && earlier.ranks == finding.ranks;
      });
  (error != context.findings.end() ? error->evidence : context.findings)
      .push_back(std::move(finding));
  return {};
}

}  // namespace tlparse
