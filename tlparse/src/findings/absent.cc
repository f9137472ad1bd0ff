// Ranks without a log, or without a dump.
#include "queries/findings/absent.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/ascii.h"
#include "base/plural.h"
#include "facts/job/exits.h"
#include "facts/ranks/ends.h"
#include "findings/context.h"
#include "findings/damage.h"
#include "findings/early_dumps.h"

namespace tlparse {
namespace {

Result<void> AddEmptyLogs(FindingContext& context) {
  const std::vector<std::int64_t>& ranks = context.job.ranks_without_records();
  if (ranks.empty()) return {};
  ASSIGN_OR_RETURN(const std::string why, WhyWithoutRecords(context, ranks));
  Finding& finding = context.Add(FindingKind::kMissingRank, FindingSeverity::kWarning);
  finding.ranks = ranks;
  finding.rank_count = ranks.size();
  const std::string list = FormatRankRanges(ranks);
  finding.title = fmt::format("The log{} of {} {} no record", PluralS(ranks.size()),
                              (ranks.size() == 1 ? "rank " : "ranks ") + list,
                              ranks.size() == 1 ? "holds" : "hold");
  if (!why.empty()) finding.title += ": " + why;
  SayWithoutRecords(context, finding, ranks.size() == 1, "the others");
  return {};
}

// The latest other launch in which all of these ranks have logs; 0: there is none.
Result<std::int64_t> LaunchWith(FindingContext& context, const std::vector<std::int64_t>& ranks) {
  if (context.launches.size() < 2) return 0;
  ASSIGN_OR_RETURN(const FirstRow<OtherLaunchWith> other,
                   First(Query<OtherLaunchWith>(context.database, {.run_id = context.job.run_id(),
                                                                   .launch = context.job.launch(),
                                                                   .ranks = ranks})));
  return other ? other->ordinal : 0;
}

// An error, or ranks that did not come to a collective, if no moment of a job that runs.
bool IsOfFailure(const Finding& one) {
  return one.severity == FindingSeverity::kError ||
         (one.kind == FindingKind::kCollectiveNotReached && one.severity != FindingSeverity::kNote);
}

// Whether the job came to no good end.
bool HasUnexplainedEnd(const FindingContext& context) {
  return std::any_of(context.findings.begin(), context.findings.end(), [](const Finding& one) {
    return IsOfFailure(one) &&
           (one.kind == FindingKind::kStoppedFirst || one.kind == FindingKind::kStuck ||
            one.kind == FindingKind::kCollectiveNotReached);
  });
}

// A rank that compiles nothing writes no log. If fewer than half of the ranks have logs, or one log was
// given alone, the user may have given only some of them. Otherwise a log is missing where the rank had one before, where the
// others' graphs need the rank, or where nothing else says why the job ended: where run.json shows that
// the rank ran, it does.
FindingSeverity SeverityOfMissing(const FindingContext& context, std::size_t count,
                                  bool has_other_log, bool is_needed, bool have_run,
                                  bool is_alone) {
  if (context.options.world_size) return FindingSeverity::kWarning;
  if (is_alone) return FindingSeverity::kNote;
  if (2 * static_cast<std::int64_t>(count) > context.ranks.world_size)
    return FindingSeverity::kNote;
  const bool is_explained =
      std::any_of(context.findings.begin(), context.findings.end(), [](const Finding& one) {
        return one.kind == FindingKind::kCompileFailed && one.severity == FindingSeverity::kError;
      });
  const bool is_suspicious =
      has_other_log || (!is_explained && (is_needed || (!have_run && HasUnexplainedEnd(context))));
  return is_suspicious ? FindingSeverity::kWarning : FindingSeverity::kNote;
}

std::string WhatToLookAt(std::size_t missing) {
  const bool is_one = missing == 1;
  return fmt::format(
      "look at what {} printed, whether TORCH_TRACE was set for {}, and whether "
      "TORCHDYNAMO_DISABLE or "
      "TORCH_COMPILE_DISABLE was",
      is_one ? "that process" : "those processes", is_one ? "it" : "them");
}

// Where logs end together and none shows that it was first, or there is one log alone, the rank without
// a log may have been: their ends become evidence.
Result<void> TakeEndsTogether(FindingContext& context, Finding& finding) {
  ASSIGN_OR_RETURN(const EndChain chain, FindEndChain({.database = context.database,
                                                       .job = context.job,
                                                       .damage = context.ranks.damage,
                                                       .status = context.status,
                                                       .has_ranks = context.HasRanks()}));
  const auto ends =
      std::find_if(context.findings.begin(), context.findings.end(), [](const Finding& one) {
        return one.kind == FindingKind::kStoppedFirst && one.severity == FindingSeverity::kError;
      });
  const bool is_one = context.All().size() == 1;
  if ((chain.is_first_known && !is_one) || !chain.outside.empty() || ends == context.findings.end())
    return {};
  finding.severity = FindingSeverity::kError;
  finding.title += "; " + std::string(1, LowerAscii(ends->title.front())) + ends->title.substr(1);
  finding.detail +=
      is_one
          ? fmt::format(" Whether {} ended before {} is not known.",
                        finding.ranks.size() == 1 ? "it" : "they", context.WhoInside(context.All()))
          : " Which of the others' logs ends first is not known: they end together.";
  finding.evidence.push_back(std::move(*ends));
  context.findings.erase(ends);
  return {};
}

// What shows that there are such ranks.
std::string WhatShowsThem(const FindingContext& context, const std::vector<ProcessExit>& exits,
                          const std::vector<std::int64_t>& missing) {
  std::set<std::int64_t> seen, done;
  for (const ProcessExit& one : exits) {
    if (!one.rank || !std::binary_search(missing.begin(), missing.end(), *one.rank)) continue;
    seen.insert(*one.rank);
    if (one.exit_code == 0 && !one.raised) done.insert(*one.rank);
  }
  if (done.size() == missing.size())
    return fmt::format("By run.json {} ended with exit code 0.", RanksText(missing));
  if (seen.size() == missing.size()) return fmt::format("By run.json {} ran.", RanksText(missing));
  if (!context.ranks.world_size_source.empty()) return context.ranks.world_size_source;
  return fmt::format(
      "The highest rank with a log is {}; how many ranks there were is not in the logs.",
      context.ranks.world_size - 1);
}

Result<void> AddMissing(FindingContext& context) {
  if (!context.HasRanks()) return {};
  RETURN_IF_ERROR(AddEmptyLogs(context));
  ASSIGN_OR_RETURN(const std::vector<std::int64_t> eager, FindEagerRanks(context));
  std::vector<std::int64_t> missing;
  std::set_difference(context.ranks.missing_ranks.begin(), context.ranks.missing_ranks.end(),
                      eager.begin(), eager.end(), std::back_inserter(missing));
  const std::int64_t world_size = context.ranks.world_size;
  if (missing.empty()) return {};
  ASSIGN_OR_RETURN(const std::int64_t elsewhere, LaunchWith(context, missing));
  ASSIGN_OR_RETURN(
      const FirstRow<LaunchWithWorldCollectives> world,
      First(Query<LaunchWithWorldCollectives>(
          context.database, {.run_id = context.job.run_id(), .launch = context.job.launch()})));
  ASSIGN_OR_RETURN(const std::vector<ProcessExit> all_exits,
                   LoadExits(context.database, context.job.run_id()));
  const std::vector<ProcessExit> exits = ExitsBeside(all_exits, ProcessesOf(context.job));
  const bool have_run = std::all_of(missing.begin(), missing.end(), [&](std::int64_t rank) {
    return std::any_of(exits.begin(), exits.end(),
                       [&](const ProcessExit& one) { return one.rank == rank; });
  });
  ASSIGN_OR_RETURN(const FirstRow<LogGivenAlone> given,
                   First(Query<LogGivenAlone>(context.database, {.run_id = context.job.run_id()})));
  Finding finding;
  finding.kind = FindingKind::kMissingRank;
  finding.severity = SeverityOfMissing(context, missing.size(), elsewhere > 0,
                                       world->has_collectives, have_run, given->is_alone);
  finding.ranks = missing;
  finding.rank_count = missing.size();
  const std::string list = FormatRankRanges(missing);
  finding.title = fmt::format("No log from {} {}", missing.size() == 1 ? "rank" : "ranks",
                              list.size() > 80 ? list.substr(0, list.rfind(',', 80)) + ",…" : list);
  finding.cause = "no log";
  if (elsewhere > 0) finding.title += fmt::format(" in launch {}", context.job.launch());
  if (!context.ranks.world_size_source.empty())
    finding.title +=
        fmt::format(" ({} of {} ranks have one)",
                    world_size - static_cast<std::int64_t>(missing.size()), world_size);
  finding.detail = WhatShowsThem(context, exits, missing);
  if (elsewhere > 0)
    finding.detail += fmt::format(
        " {} in launch {}.", missing.size() == 1 ? "It has a log" : "They have logs", elsewhere);
  finding.detail += given->is_alone ? " Only this log was given: others were not looked for."
                                    : " A process that compiles nothing writes no log.";
  if (world->has_collectives)
    finding.detail += fmt::format(
        " The graphs of the others hold collectives of the default group, in which {} part.",
        missing.size() == 1 ? "it takes" : "they take");
  finding.suggestion = given->is_alone ? "give the folder that holds the logs of all ranks"
                                       : WhatToLookAt(missing.size());
  finding.query = fmt::format(
      "SELECT p.id, p.rank FROM process p JOIN launch n ON n.id = p.launch_id "
      "WHERE n.run_id = {} AND n.ordinal = {} ORDER BY p.rank",
      context.job.run_id(), context.job.launch());
  if (finding.severity == FindingSeverity::kWarning)
    RETURN_IF_ERROR(TakeEndsTogether(context, finding));
  context.findings.push_back(std::move(finding));
  return {};
}

// What the other dumps show of a rank that waited for ranks without one, or failed with them.
void SayEarlyDump(const FindingContext& context, Finding& finding) {
  const std::optional<EarlyDump> early = FindEarlyDump(context.issued);
  if (!early) return;
  const bool is_said = std::any_of(
      context.findings.begin(), context.findings.end(),
      [](const Finding& one) { return one.kind == FindingKind::kCollectiveNotReached; });
  if (!is_said)
    finding.title +=
        fmt::format(", and {} {} before {}, which {} issued",
                    (early->rank_count == 1 ? "that of " : "those of ") + early->ranks,
                    early->rank_count == 1 ? "ends" : "end", early->call, early->holders);
  if (!early->elsewhere.empty())
    finding.detail +=
        fmt::format(" {}: {} may be {} of that group.", early->elsewhere, RanksText(finding.ranks),
                    finding.ranks.size() == 1 ? "a member" : "members");
}

// The ranks that should have left a dump: those with a log; without logs, all that the dumps name.
std::set<std::int64_t> RanksOfJob(const FindingContext& context) {
  std::set<std::int64_t> ranks;
  for (const JobParticipant& one : context.job.participants()) {
    if (one.rank && !one.is_extra_log) ranks.insert(*one.rank);
  }
  if (!context.job.participants().empty()) return ranks;
  for (const IssuingRank& one : context.issued.ranks) {
    if (one.rank) ranks.insert(*one.rank);
  }
  // Gloo's dumps do not name the members of groups; but there is no rank 4 without a rank 3.
  for (std::int64_t rank = 0; !ranks.empty() && rank < *ranks.rbegin(); ++rank) ranks.insert(rank);
  return ranks;
}

// A note if fewer than half have a dump, or where other ranks are known to have failed.
Result<void> AddMissingDumps(FindingContext& context) {
  if (context.live != nullptr || context.launches.size() > 1) return {};
  std::set<std::int64_t> dumped;
  FOR_EACH_ROW(const RankWithDump& row,
               Query<RankWithDump>(context.database, {.run_id = context.job.run_id()})) {
    if (!row.rank) return {};  // it may be any rank's
    dumped.insert(*row.rank);
  }
  std::vector<std::int64_t> with, without;
  for (const std::int64_t rank : RanksOfJob(context))
    (dumped.contains(rank) ? with : without).push_back(rank);
  if (without.empty() || with.empty()) return {};
  // Only some of the dumps may have been given, unless the others or logs name the rank.
  const bool is_named = std::any_of(without.begin(), without.end(), [&](std::int64_t rank) {
    return !context.job.participants().empty() ||
           std::any_of(context.issued.ranks.begin(), context.issued.ranks.end(),
                       [&](const IssuingRank& one) { return one.rank == rank; });
  });
  if (!is_named && with.size() <= without.size()) return {};
  const bool has_failed =
      std::any_of(context.findings.begin(), context.findings.end(), [&](const Finding& one) {
        return IsOfFailure(one) && !one.ranks.empty() &&
               std::none_of(without.begin(), without.end(), [&](std::int64_t rank) {
                 return std::binary_search(one.ranks.begin(), one.ranks.end(), rank);
               });
      });
  Finding& finding = context.Add(FindingKind::kMissingRank,
                                 is_named && with.size() >= without.size() && !has_failed
                                     ? FindingSeverity::kWarning
                                     : FindingSeverity::kNote);
  finding.ranks = without;
  finding.rank_count = without.size();
  finding.title = fmt::format("No recorder dump from {}; {} {} one", RanksText(without),
                              RanksText(with), with.size() == 1 ? "has" : "have");
  finding.cause = kNoRecorderDump;
  finding.detail = fmt::format(
      "Which collectives {} issued is not known. A process that ends before it writes a dump "
      "leaves none.",
      without.size() == 1 ? "it" : "they");
  if (const std::optional<FinalCall> last = FindFinalCall(context.issued)) {
    finding.detail +=
        fmt::format(" The last call in the dumps is that of {}: {}.", last->rank, last->call);
    if (!last->file.empty()) finding.place = FindingPlace{last->file, last->line, {}};
  }
  SayEarlyDump(context, finding);
  finding.suggestion =
      fmt::format("look at what {} printed, and whether all dumps are among the input",
                  without.size() == 1 ? "that process" : "those processes");
  finding.query =
      fmt::format("SELECT id, rank FROM profile WHERE run_id = {} AND kind = 'flight_recorder'",
                  context.job.run_id());
  return {};
}

}  // namespace

Result<void> FindAbsentRanks(FindingContext& context) {
  RETURN_IF_ERROR(AddMissing(context));
  RETURN_IF_ERROR(AddMissingDumps(context));
  FindEarlyDumps(context);
  return {};
}

}  // namespace tlparse
