// A rank for which the others wait again and again, in collectives or in receives.
#include "facts/collectives/stragglers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/plural.h"
#include "facts/collectives/issued_group.h"
#include "facts/collectives/profiled_waits.h"
#include "findings/issued_collectives.h"

namespace tlparse {
namespace {

std::string DelayText(std::int64_t ns) {
  return ns < 100'000'000 ? fmt::format("{:.1f} ms", static_cast<double>(ns) / 1e6)
                          : SecondsText(ns / 1000);
}

// "it", of several ranks "rank 1": whose work is described.
std::string Subject(const ProfiledWait& found) {
  return found.ranks.size() > 1 ? fmt::format("rank {}", found.rank) : std::string("it");
}

// What the rank did in the times in which it was awaited; empty: the most of it is not of one kind.
std::string WhatItDid(const ProfiledWait& found) {
  const MostWork& work = found.work;
  const std::string who = Subject(found);
  if (!found.activity.empty())
    return fmt::format("; {} of that {} was in {}", DelayText(found.activity_ns), who,
                       found.activity);
  const std::int64_t ran_ns = found.lost_ns - work.idle_ns - work.compile_ns;
  std::string text;
  if (found.idle_more_ns > 0) {
    text = fmt::format("; while it did not wait, {} for {} longer than {} of any other rank",
                       found.is_of_devices ? "no kernel ran on its device" : "no op of it worked",
                       DelayText(found.idle_more_ns), found.is_of_devices ? "on that" : "one");
  } else if (found.IsIdle()) {
    text = found.is_of_devices
               ? fmt::format("; {} of that {} ran no kernel", DelayText(work.idle_ns),
                             found.ranks.size() > 1 ? "the device of " + who : "its device")
               : fmt::format("; {} of that {} was in no op", DelayText(work.idle_ns), who);
  } else if (2 * work.compile_ns >= found.lost_ns) {
    text = fmt::format("; {} of that {} compiled", DelayText(work.compile_ns), who);
  } else if (2 * work.op_ns >= found.lost_ns) {
    text = fmt::format("; {} of that {} was in {}", DelayText(work.op_ns), who, work.op);
  } else if (2 * ran_ns >= found.lost_ns) {
    text = fmt::format("; {} of that {} ran {}, {} of it {}", DelayText(ran_ns), who,
                       found.is_of_devices ? "kernels" : "ops", DelayText(work.op_ns), work.op);
  }
  if (found.function.name.empty()) return text;
  return text + fmt::format("{} {} in {}", text.empty() ? ";" : ",", DelayText(found.function.ns),
                            found.function.name);
}

std::string SuggestionOf(const ProfiledWait& found, bool has_collectives) {
  const std::string before = has_collectives ? "before its next collective" : "before it sends";
  if (!found.activity.empty())
    return fmt::format("look at what rank {} does in {} {}", found.rank, found.activity, before);
  if (!found.function.name.empty())
    return fmt::format("look at what rank {} does in {}, {}", found.rank, found.function.name,
                       before);
  if (found.is_of_devices && !found.IsIdle() && found.idle_more_ns == 0)
    return fmt::format(
        "compare the kernels of the ranks, with 'tlparse cost --by kernel --rank {}', and look at "
        "the "
        "clock of its device",
        found.rank);
  if (found.IsIdle() || found.idle_more_ns > 0)
    return fmt::format(
        "look at what rank {} does in Python or waits for {}: its loader, files, locks, the "
        "garbage "
        "collector; torch.profiler's with_stack=True names the function",
        found.rank, before);
  if (2 * found.work.compile_ns >= found.lost_ns)
    return fmt::format(
        "look at what rank {} compiles again, with TORCH_TRACE or "
        "TORCH_LOGS=recompiles",
        found.rank);
  return fmt::format(
      "compare what the ranks run {}: the shapes and the number of its ops, with "
      "'tlparse cost --by op --rank {}'",
      before, found.rank);
}

// " Rank 0 sends to rank 1, ranks 2,3 receive from it."; empty: the peers are not known.
std::string PeersOfWait(const ProfiledWait& found) {
  std::string text;
  const auto add = [&](const std::vector<std::int64_t>& ranks, std::string_view verb,
                       std::string_view to) {
    if (ranks.empty()) return;
    const std::string who =
        fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", FormatRankRanges(ranks));
    const std::string whom = text.empty() ? fmt::format("rank {}", found.rank) : std::string("it");
    text += fmt::format("{} {}{} {} {}", text.empty() ? " " + Capital(who) : ", " + who, verb,
                        VerbS(ranks.size()), to, whom);
  };
  add(found.sending, "send", "to");
  add(found.receiving, "receive", "from");
  return text.empty() ? text : text + ".";
}

std::string DetailOfWait(const ProfiledWait& found, const std::string& calls) {
  const bool is_one = found.waiting.size() == 1;
  const bool has_messages = found.kinds.size() > std::size_t{found.kinds.contains("collectives")};
  std::string detail = fmt::format(
      "By the profiles of {}, which cover {} together{}: in that time {} inside {} and {} "
      "{} not.{}",
      found.group.empty() ? "all ranks" : "the ranks of " + found.group,
      SecondsText(found.span_ns / 1000),
      found.compiled_ns > 0
          ? fmt::format(", {} of it in compiles", SecondsText(found.compiled_ns / 1000))
          : std::string(),
      is_one                ? "the other rank was"
      : found.group.empty() ? "all other ranks were"
                            : "its other ranks were",
      calls,
      found.ranks.size() == 1 ? fmt::format("rank {}", found.rank)
                              : "one of ranks " + FormatRankRanges(found.ranks),
      "was",
      found.is_long_stage ? " Each stage of a pipeline works while the others wait; this one does "
                            "for longest."
      : has_messages && !found.IsIdle() ? " Its own work in a pipeline is part of it."
                                        : "");
  detail += PeersOfWait(found);
  if (!found.group.empty())
    detail +=
        " Which calls are of that group is told by their ends, which are the same on its ranks: "
        "the "
        "profiles do not name the group of a call.";
  if (found.trains_alone) {
    const std::string who = fmt::format("{} {}", found.ranks.size() == 1 ? "rank" : "ranks",
                                        FormatRankRanges(found.ranks));
    detail += fmt::format(
        " {} {}: they are no replicas, and one of them may have more to do by design.",
        *found.trains_alone ? Capital(who) : std::string("The others"),
        *found.trains_alone
            ? found.ranks.size() == 1 ? std::string("alone runs backwards")
                                      : std::string("alone run backwards")
            : "run backwards, " + who + (found.ranks.size() == 1 ? " does not" : " do not"));
  }
  return detail;
}

// In one receive or collective after another, all others waited.
Finding ProfiledFinding(const FindingContext& context, const ProfiledWait& found) {
  Finding finding;
  finding.kind = FindingKind::kStraggler;
  finding.severity = found.is_long_stage || found.trains_alone ? FindingSeverity::kNote
                                                               : FindingSeverity::kWarning;
  finding.launch = context.job.launch();
  finding.ranks = found.ranks;
  finding.rank_count = found.ranks.size();
  const bool is_one = found.waiting.size() == 1;
  const bool has_collectives = found.kinds.contains("collectives");
  const std::string calls = fmt::format("{}", fmt::join(found.kinds, " and "));
  finding.title = fmt::format(
      "{} {} {} in {} for {} {}: {} times, {} at the median, {} in all{}{}",
      is_one ? "Rank" : "Ranks", FormatRankRanges(found.waiting), is_one ? "waits" : "wait", calls,
      found.ranks.size() == 1 ? "rank" : "ranks", FormatRankRanges(found.ranks), found.count,
      DelayText(found.median_ns), DelayText(found.lost_ns),
      found.steps > 1
          ? fmt::format(" ({} a step)",
                        DelayText(found.lost_ns / static_cast<std::int64_t>(found.steps)))
          : std::string(),
      WhatItDid(found));
  finding.detail = DetailOfWait(found, calls);
  finding.cause = has_collectives ? "others wait in collectives" : "others wait in receives";
  finding.since_us = found.since_ns / 1000;
  finding.suggestion = SuggestionOf(found, has_collectives);
  finding.query = fmt::format(
      "SELECT a.id, p.rank, a.name, a.start_us, a.duration_us FROM annotation a JOIN profile p "
      "ON p.id = a.profile_id WHERE p.run_id = {} AND a.name LIKE 'gloo:%' ORDER BY a.start_us",
      context.job.run_id());
  if (found.is_of_devices)
    finding.query = fmt::format(
        "SELECT id, rank, op, device_start_ns, end_ns FROM collective_run "
        "WHERE device_start_ns IS NOT NULL ORDER BY device_start_ns");
  return finding;
}

std::string TitleOfStraggler(const IssuedJob& job, const Straggler& found,
                             const std::string& rank) {
  const bool are_all = found.long_count == found.last_count;
  std::string also;
  for (const AlsoAwaited& one : found.also)
    also += fmt::format("; others wait for {} as well, in {}, {} in all",
                        RanksText(job, {one.rank}), one.group->Title(), DelayText(one.lost_ns));
  return fmt::format(
      "{} wait{} for {}: {} came last to {} of {} {} of {}, {} after the others, {} in all{}{}{}",
      Capital(RanksText(job, found.waiting)), VerbS(found.waiting.size()), rank,
      found.ranks.size() > 1 ? "they" : "it", found.last_count, found.count,
      found.is_of_barriers ? "barriers" : "collectives", found.group->Title(),
      are_all
          ? fmt::format("{}{}", found.is_at_least ? "at least " : "", DelayText(found.median_ns))
          : fmt::format("to {} of them {} or more", found.long_count, DelayText(found.least_ns)),
      DelayText(found.lost_ns), found.has_shared ? " as they overlap" : "",
      found.compiled_ns > 0 ? ", its compiles not counted" : "", also);
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
  if (found.is_of_device)
    text += fmt::format(" {} enqueued them in time: {} came late to them.", Capital(rank),
                        found.ranks.size() > 1 ? "their devices" : "its device");
  if (found.has_barriers) text += " Barriers are not counted.";
  if (found.unawaited_count > 0)
    text += fmt::format(" Not counted {} {} in which no rank waited for another.",
                        found.unawaited_count == 1 ? "is" : "are",
                        found.unawaited_count == 1 ? std::string("one more")
                                                   : fmt::format("{} more", found.unawaited_count));
  if (found.is_of_barriers)
    text += fmt::format(
        " Barriers are there to wait in: whether it is by design that {} has more to do before "
        "them "
        "is not in the inputs.",
        rank);
  if (found.compiled_ns > 0)
    text += fmt::format(" Not counted are {} in which {} compiled meanwhile.",
                        DelayText(found.compiled_ns), rank);
  return text;
}

Result<std::optional<ProfiledWait>> ProfiledWaitOf(FindingContext& context) {
  std::set<std::int64_t> ranks;
  for (const JobParticipant& one : context.job.participants()) {
    if (one.rank) ranks.insert(*one.rank);
  }
  if (context.launches.size() > 1) return std::optional<ProfiledWait>();
  return FindProfiledWait(context.database, context.job.run_id(), ranks);
}

Finding IssuedFinding(FindingContext& context, const Straggler& found) {
  const IssuedJob& job = context.issued;
  const std::string rank = RanksText(job, found.ranks);
  CollectiveFinding problem;
  problem.kind = FindingKind::kStraggler;
  // A rank whose calls are not known may have come later still.
  const std::vector<std::size_t>& unknown = found.group->unknown;
  const bool is_sure = !found.is_of_barriers && unknown.empty() && found.without_it == nullptr &&
                       !found.may_be_spread;
  problem.severity = is_sure ? FindingSeverity::kWarning : FindingSeverity::kNote;
  problem.title = TitleOfStraggler(job, found, rank);
  problem.detail = DetailOfStraggler(found, rank);
  if (!unknown.empty())
    problem.detail += fmt::format(" When {} came is not known.", RanksText(job, unknown));
  if (found.may_be_spread)
    problem.detail +=
        " The delays are less than twice what the times of the other ranks differ by, and of so "
        "few "
        "calls one rank may be last by chance.";
  if (found.without_it != nullptr)
    problem.detail += fmt::format(
        " The others have {} without {}: {} another part in the job, and may have more to do by "
        "design.",
        found.without_it->Title(), rank, found.ranks.size() == 1 ? "it has" : "they have");
  problem.ranks = found.ranks;
  for (const AlsoAwaited& one : found.also) problem.ranks.push_back(one.rank);
  std::sort(problem.ranks.begin(), problem.ranks.end());
  SetPlace(problem, *found.group, *found.call);
  problem.cause = "last at collectives";
  const std::string before =
      found.call->Place().empty() ? found.call->PrintedOp() : found.call->Place();
  problem.advice =
      found.is_of_device
          ? fmt::format(
                "look at which kernels before {} take longer on {}, with 'tlparse cost --by "
                "kernel --rank', and at the clock of its device",
                before, rank)
      : found.activity.empty()
          ? fmt::format(
                "look at what {} before {} that the others do not: loaders, shares of the data, "
                "recompiles, processors",
                rank + (found.ranks.size() > 1 ? " do" : " does"), before)
          : fmt::format("look at why {} takes longer in {}, before {}, than the others", rank,
                        found.activity, before);
  return FindingOfIssued(context, job, problem);
}

}  // namespace

// Profiles of all ranks know in which calls of all groups a rank waited itself, and what it did.
Result<void> FindStragglers(FindingContext& context) {
  const IssuedJob& job = context.issued;
  ASSIGN_OR_RETURN(std::optional<Straggler> found, FindStraggler(context.database, job, false));
  std::optional<ProfiledWait> profiled;
  if (!found || found->activity.empty()) {
    ASSIGN_OR_RETURN(profiled, ProfiledWaitOf(context));
  }
  if (!found && !profiled) {
    ASSIGN_OR_RETURN(found, FindStraggler(context.database, job, true));
  }
  if (!found && !profiled) return {};
  Finding finding;
  if (profiled) {
    finding = ProfiledFinding(context, *profiled);
    const auto is_its = [&](std::size_t index) {
      return job.ranks[index].rank &&
             std::binary_search(profiled->ranks.begin(), profiled->ranks.end(),
                                *job.ranks[index].rank);
    };
    if (found && is_its(found->rank)) {
      Finding of_dumps = IssuedFinding(context, *found);
      finding.place = of_dumps.place;
      finding.evidence.push_back(std::move(of_dumps));
    }
  } else {
    finding = IssuedFinding(context, *found);
  }
  const auto error =
      std::find_if(context.findings.begin(), context.findings.end(), [&](const Finding& earlier) {
        return earlier.severity == FindingSeverity::kError && earlier.ranks == finding.ranks;
      });
  (error != context.findings.end() ? error->evidence : context.findings)
      .push_back(std::move(finding));
  return {};
}

}  // namespace tlparse
