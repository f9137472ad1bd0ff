// Ranks whose logs end where they wait for all others before they call compiled code.
#include "queries/findings/guard_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/plural.h"
#include "facts/job/stops.h"
#include "findings/context.h"

namespace tlparse {
namespace {

// torch.compiler.set_enable_guard_collectives (guard_collectives_hook, torch/_dynamo/eval_frame.py).
constexpr std::string_view kGuardCollective = "guard_collective";

struct GuardWait {
  std::vector<RankIndex> ranks;
  std::vector<std::int64_t> ids;
  std::optional<std::int64_t> since_us;
};

}  // namespace

Result<void> FindGuardWaits(FindingContext& context) {
  if (context.live != nullptr || !context.HasRanks()) return {};
  const JobStatus job{.database = context.database,
                      .job = context.job,
                      .damage = context.ranks.damage,
                      .status = context.status,
                      .has_ranks = true};
  std::map<std::vector<RankIndex>, GuardWait> waits;  // by the ranks that did not come
  FOR_EACH_ROW(const OpenGuardCollective& row,
               Query<OpenGuardCollective>(
                   context.database,
                   {.name = kGuardCollective, .in_logs = context.job.InLogs("e.record_id")})) {
    const RankIndex rank = context.job.ParticipantOfProcess(row.process_id);
    if (rank < 0) continue;
    ASSIGN_OR_RETURN(std::vector<RankIndex> awaited, AwaitedRanks(job, rank, kGuardCollective));
    if (awaited.empty()) continue;
    GuardWait& wait = waits[std::move(awaited)];
    wait.ranks.push_back(rank);
    wait.ids.push_back(row.record_id);
    if (row.start_us && !wait.since_us) wait.since_us = static_cast<std::int64_t>(*row.start_us);
  }
  for (auto& [awaited, wait] : waits) {
    Finding finding;
    finding.kind = FindingKind::kCollectiveNotReached;
    finding.severity = FindingSeverity::kWarning;
    context.SetRanks(finding, awaited);
    std::sort(wait.ranks.begin(), wait.ranks.end());
    finding.since_us = wait.since_us;
    finding.cause = fmt::format("{} waits for other ranks", kGuardCollective);
    finding.title =
        fmt::format("{} wait{} in {} for {}", context.Who(wait.ranks), VerbS(wait.ranks.size()),
                    kGuardCollective, context.WhoInside(awaited));
    finding.detail = fmt::format(
        "All ranks come to it before any of them calls compiled code, and by the logs {} did not. "
        "Where a job was ended from outside, it may have been on its way.",
        context.WhoInside(awaited));
    finding.query =
        fmt::format("SELECT * FROM chromium_event WHERE record_id IN {}", IdList(wait.ids));
    // What ended or stopped that rank explains it.
    const auto cause =
        std::find_if(context.findings.begin(), context.findings.end(), [&](const Finding& one) {
          return one.severity == FindingSeverity::kError &&
                 std::any_of(one.ranks.begin(), one.ranks.end(), [&](std::int64_t rank) {
                   return std::binary_search(finding.ranks.begin(), finding.ranks.end(), rank);
                 });
        });
    (cause != context.findings.end() ? cause->evidence : context.findings)
        .push_back(std::move(finding));
  }
  return {};
}

}  // namespace tlparse
