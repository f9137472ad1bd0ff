// The whole answer about collectives, of a run or of one of its launches.
#include <algorithm>
#include <utility>

#include "facts/collectives/collectives.h"
#include "facts/compiles/user_frames.h"
#include "facts/job/read_transaction.h"
#include "facts/job/written_since.h"

namespace tlparse {
namespace {

Result<void> SayWhyNoneIssued(Database& database, CollectiveAnswer& answer) {
  const IssuedJob& issued = answer.issued;
  const bool has_some =
      !issued.empty() || !issued.not_compared.empty() || !issued.profiled_traffic.ranks.empty();
  const bool has_collectives =
      std::any_of(answer.classes.begin(), answer.classes.end(),
                  [](const CollectiveClass& one) { return one.collectives > 0; });
  if (has_some || !has_collectives || answer.job.participants().size() < 2) return {};
  ASSIGN_OR_RETURN(answer.not_written,
                   WhyNotWritten(database, answer.job.run_id(), VersionedInput::kGlooDumps));
  return {};
}

Result<void> AddStacks(Database& database, CollectiveAnswer& answer) {
  for (const IssuedGroup& group : answer.issued.groups) {
    for (const std::vector<IssuedCollective>& of_rank : group.issued) {
      for (const IssuedCollective& one : of_rank) {
        if (one.stack_id == 0 || answer.stacks.contains(one.stack_id)) continue;
        ASSIGN_OR_RETURN(answer.stacks[one.stack_id], UserFramesOfStack(database, one.stack_id));
      }
    }
  }
  return {};
}

}  // namespace

Result<void> AddIssued(Database& database, std::optional<std::int64_t> launch,
                       const CollectiveOptions& options, CollectiveAnswer& answer) {
  ASSIGN_OR_RETURN(answer.issued, LoadIssued(database, answer.job.run_id(), launch));
  ASSIGN_OR_RETURN(answer.progress, CompareWithSchedule(database, answer.issued));
  ASSIGN_OR_RETURN(answer.problems, FindAllOfIssued(database, answer.issued));
  if (options.with_stacks) RETURN_IF_ERROR(AddStacks(database, answer));
  return SayWhyNoneIssued(database, answer);
}

Result<CollectiveAnswer> AnalyzeCollectives(Database& database, const CollectiveOptions& options) {
  ASSIGN_OR_RETURN(const ReadTransaction transaction, ReadTransaction::Begin(database));
  CollectiveAnswer answer;
  Result<Job> job = Job::Load(database, options.run, options.launch);
  const std::optional<std::int64_t> launch = job ? job->launch() : options.launch;
  if (job) {
    answer.job = std::move(*job);
    ASSIGN_OR_RETURN(answer.graphs, JobGraphs::Load(database, answer.job));
    ASSIGN_OR_RETURN(answer.damage, FindLogDamage(database, answer.job));
    RETURN_IF_ERROR(FindCollectiveClasses(database, answer));
  } else {
    Result<Job> without_logs = Job::LoadWithoutLogs(database, options.run);
    if (!without_logs || options.launch) return tl::unexpected<Error>(job.error());
    answer.job = std::move(*without_logs);
  }
  RETURN_IF_ERROR(AddIssued(database, launch, options, answer));
  return answer;
}

}  // namespace tlparse
