// Logs that are not of one job: two jobs that ran at the same time and wrote into one folder, a job
// whose ranks start another script, copies of logs.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "findings/context.h"

namespace tlparse {
namespace {

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

constexpr std::string_view kOfFurtherLogs = "A number behind # is of a further log of that rank. ";
constexpr std::string_view kAdvice =
    "if they are two jobs, give each a folder of its own (TORCH_TRACE), and ingest its logs alone";

std::string QueryOf(const FindingContext& context) {
  return "SELECT s.process_id, s.rank, s.pid, f.path "
         "FROM rank_status s JOIN log_file f ON f.id = s.log_file_id WHERE " +
         context.OfLaunch();
}

const JobParticipant& ParticipantOf(const FindingContext& context, RankIndex one) {
  return context.job.participants()[static_cast<std::size_t>(one)];
}

void AddOtherScripts(FindingContext& context) {
  std::map<std::string, std::vector<RankIndex>> by_script;
  std::size_t other_count = 0;
  for (const RankIndex one : context.All()) {
    const JobParticipant& participant = ParticipantOf(context, one);
    if (participant.is_of_other_job && !participant.is_of_second_job) ++other_count;
    if (!participant.script.empty()) by_script[participant.script].push_back(one);
  }
  if (other_count == 0) return;
  Finding& finding =
      context.Add(FindingKind::kSeveralJobs,
                  other_count < 2 ? FindingSeverity::kNote : FindingSeverity::kWarning);
  std::string list;
  for (const auto& [script, who] : by_script)
    list += fmt::format("{}{} ran {}", list.empty() ? "" : ", ", context.WhoInside(who), script);
  finding.title = fmt::format("The logs are of {} programs that ran at the same time: {}",
                              by_script.size(), list);
  finding.cause = "several programs";
  finding.detail = std::string(kOfFurtherLogs) + "The programs are not compared with each other.";
  finding.suggestion = kAdvice;
  finding.rank_count = context.job.participants().size();
  finding.query = QueryOf(context);
}

// Two logs of each of most ranks, of one script.
void AddSecondJob(FindingContext& context) {
  std::vector<RankIndex> first, second;
  const JobParticipant* shown = nullptr;
  for (const RankIndex one : context.All()) {
    const JobParticipant& participant = ParticipantOf(context, one);
    if (!participant.is_of_second_job) continue;
    second.push_back(one);
    shown = &participant;
    for (const RankIndex other : context.All()) {
      const JobParticipant& candidate = ParticipantOf(context, other);
      if (candidate.rank == participant.rank && !candidate.is_extra_log) first.push_back(other);
    }
  }
  if (second.empty()) return;
  Finding& finding = context.Add(FindingKind::kSeveralJobs, FindingSeverity::kWarning);
  finding.title = fmt::format(
      "{} have two logs each of the same time, of processes that ran {}: as of two jobs that write "
      "into one folder",
      context.Who(first), shown->script);
  finding.cause = "two jobs of one script";
  finding.detail =
      shown->is_job_clear
          ? fmt::format(
                "By process id or start, {} are of one job, {} of the other. {}The second "
                "is not compared with the first.",
                context.WhoInside(first), context.WhoInside(second), kOfFurtherLogs)
          : fmt::format(
                "Neither process ids nor times show which of the two logs of a rank are of "
                "one job: differences between ranks may be differences between the jobs. {}"
                "{} are not compared.",
                kOfFurtherLogs, context.Who(second));
  finding.suggestion = kAdvice;
  finding.rank_count = context.job.participants().size();
  finding.query = QueryOf(context);
}

void AddCopies(FindingContext& context) {
  const std::vector<CopiedLog>& copies = context.job.copied_logs();
  if (copies.empty()) return;
  Finding& finding = context.Add(FindingKind::kSeveralJobs, FindingSeverity::kNote);
  const CopiedLog& one = copies.front();
  const bool is_one = copies.size() == 1;
  const bool are_whole = std::all_of(copies.begin(), copies.end(),
                                     [](const CopiedLog& copy) { return copy.is_whole; });
  const std::string count =
      is_one ? "1 log is a copy" : fmt::format("{} logs are copies", copies.size());
  finding.title = fmt::format("{} of another one: {} {} {}", count, FileName(one.path),
                              one.is_whole ? "has the same bytes as" : "is the beginning of",
                              FileName(one.original));
  if (!is_one) finding.title += fmt::format(", and {} more", copies.size() - 1);
  finding.cause = "copies of logs";
  finding.detail = fmt::format("{} for no other process and {} not compared.{}",
                               is_one ? "It stands" : "They stand", is_one ? "is" : "are",
                               are_whole ? "" : " The longer one is taken.");
  for (const CopiedLog& copy : copies) {
    if (copy.rank) finding.ranks.push_back(*copy.rank);
  }
  std::sort(finding.ranks.begin(), finding.ranks.end());
  finding.ranks.erase(std::unique(finding.ranks.begin(), finding.ranks.end()), finding.ranks.end());
  finding.rank_count = std::max<std::size_t>(finding.ranks.size(), 1);
  finding.query = fmt::format(
      "SELECT id, content_hash, name_rank, path, size_bytes FROM log_file WHERE run_id = {} "
      "ORDER BY name_rank, path",
      context.job.run_id());
}

}  // namespace

Result<void> FindOtherJobs(FindingContext& context) {
  AddOtherScripts(context);
  AddSecondJob(context);
  AddCopies(context);
  return {};
}

}  // namespace tlparse
