#include "facts/job/job_status.h"

#include <utility>

namespace tlparse {

Result<JobStatus> JobStatus::Load(Database& database, const Job& job, const LogDamage& damage) {
  JobStatus result{.database = database, .job = job, .damage = damage};
  ASSIGN_OR_RETURN(StatusAnswer answer, AnalyzeStatusOf(database, job.chosen(), job.all_logs()));
  result.status.resize(job.participants().size());
  for (ProcessStatus& row : answer.rows) {
    const RankIndex participant = job.ParticipantOfProcess(row.process_id);
    if (participant < 0) {
      result.others.push_back(std::move(row));
      continue;
    }
    // Of several processes in one log the one that compiled most represents it, not a child.
    ProcessStatus& known = result.status[static_cast<std::size_t>(participant)];
    const auto compiles = [](const ProcessStatus& one) {
      return one.compiles_done + (one.compile_id != 0 ? 1 : 0);
    };
    if (known.process_id == 0 || compiles(row) > compiles(known)) std::swap(known, row);
    if (row.process_id != 0) result.others.push_back(std::move(row));
  }
  result.has_ranks = std::any_of(job.participants().begin(), job.participants().end(),
                                 [](const JobParticipant& one) { return one.rank.has_value(); });
  return result;
}

std::vector<RankIndex> JobStatus::All() const {
  std::vector<RankIndex> all(job.participants().size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<RankIndex>(i);
  return all;
}

std::vector<RankIndex> JobStatus::Others(const std::vector<RankIndex>& who) const {
  std::vector<RankIndex> rest;
  for (const RankIndex one : All()) {
    if (!std::binary_search(who.begin(), who.end(), one)) rest.push_back(one);
  }
  return rest;
}

const std::string& FunctionOfCompile(const Job& job, const JobCompile& compile) {
  static const std::string kNone;
  return compile.function_id < 0 ? kNone : job.string(compile.function_id);
}

std::string TitleOfCompile(const Job& job, const JobCompile& compile) {
  if (IsWithoutId(job.string(compile.label_id))) return std::string(kCompileWithoutId);
  std::string title = job.string(compile.label_id);
  if (compile.function_id >= 0) title += ' ' + job.string(compile.function_id);
  return title;
}

}  // namespace tlparse
