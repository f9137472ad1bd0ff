// Logs of two programs in one launch: two jobs that ran at the same time and wrote into one folder, or
// a job whose ranks start another script.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/findings/context.h"

namespace tlparse {

Result<void> FindOtherJobs(FindingContext& context) {
  const std::vector<JobParticipant>& participants = context.job.participants();
  const auto other_count = std::count_if(participants.begin(), participants.end(),
                                         [](const auto& one) { return one.is_of_other_job; });
  if (other_count == 0) return {};
  std::map<std::string, std::vector<RankIndex>> by_script;
  for (const RankIndex one : context.All()) {
    const JobParticipant& participant = participants[static_cast<std::size_t>(one)];
    if (!participant.script.empty()) by_script[participant.script].push_back(one);
  }
  Finding& finding =
      context.Add(FindingKind::kSeveralJobs,
                  other_count < 2 ? FindingSeverity::kNote : FindingSeverity::kWarning);
  std::string list;
  for (const auto& [script, who] : by_script)
    list += fmt::format("{}{} ran {}", list.empty() ? "" : ", ", context.WhoInside(who), script);
  finding.title = fmt::format("The logs are of {} programs that ran at the same time: {}",
                              by_script.size(), list);
  finding.cause = "several programs";
  finding.detail =
      "A number behind # is of a further log of that rank. The programs are not compared with each "
      "other.";
  finding.suggestion =
      "if they are two jobs, give each a folder of its own (TORCH_TRACE), and ingest its logs "
      "alone";
  finding.rank_count = participants.size();
  finding.query =
      "SELECT s.rank, s.pid, f.path FROM rank_status s JOIN log_file f ON f.id = s.log_file_id "
      "WHERE " +
      context.OfLaunch();
  return {};
}

}  // namespace tlparse
