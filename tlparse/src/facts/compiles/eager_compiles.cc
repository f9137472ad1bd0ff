#include "facts/compiles/eager_compiles.h"

#include <algorithm>
#include <map>

#include "facts/compiles/advice.h"
#include "queries/facts/compiles/eager_compiles.h"

namespace tlparse {

namespace {

// Of the compiles that raised, those after which their participant has no others. A frame that is
// compiled because an outer one could not be may raise the same.
void KeepLast(const Job& job, std::set<std::int64_t>& raised) {
  std::map<RankIndex, std::int64_t> last_others;
  for (const JobCompile& compile : job.compiles()) {
    std::int64_t& last = last_others[compile.participant];
    if (!raised.contains(compile.id)) last = std::max(last, compile.id);
  }
  for (const JobCompile& compile : job.compiles()) {
    if (compile.id < last_others.at(compile.participant)) raised.erase(compile.id);
  }
}

// Of the compiles that failed within a transform of torch.func, those that came right after one that
// broke: with fullgraph=True there would be no break.
void AddTransformed(const Job& job, const std::set<std::int64_t>& broken,
                    const std::set<std::int64_t>& failed, BrokenCompiles& found) {
  std::map<RankIndex, std::int64_t> cause;  // 0: none
  for (const JobCompile& compile : job.compiles()) {
    std::int64_t& before = cause[compile.participant];
    if (broken.contains(compile.id)) {
      before = compile.id;
    } else if (before != 0 && failed.contains(compile.id)) {
      found.transformed[before].push_back(compile.id);
      found.eager.insert(compile.id);
    } else {
      before = 0;
    }
  }
}

}  // namespace

Result<BrokenCompiles> FindBrokenCompiles(Database& database, const Job& job) {
  BrokenCompiles found;
  std::set<std::int64_t> broken, failed;
  FOR_EACH_ROW(const BreakOfLog& row,
               Query<BreakOfLog>(database, {.in_logs = job.InLogs("g.record_id")})) {
    const JobCompile* compile = job.FindCompile(row.compile_id);
    if (compile == nullptr) continue;
    broken.insert(compile->id);
    const bool has_failed = compile->status == CompileStatus::kFailed && row.is_unsupported;
    if (has_failed && CauseOfBreak(row.reason).starts_with("Observed exception"))
      found.raised.insert(compile->id);
    if (IsSkippedFunction(row.reason) || compile->status == CompileStatus::kSkipped || has_failed)
      found.eager.insert(compile->id);
  }
  KeepLast(job, found.raised);
  for (const std::int64_t one : found.raised) found.eager.erase(one);
  FOR_EACH_ROW(const FailureInTransform& row,
               Query<FailureInTransform>(database, {.in_logs = job.InLogs("f.record_id")}))
    failed.insert(row.compile_id);
  AddTransformed(job, broken, failed, found);
  return found;
}

Result<bool> AreErrorsSuppressed(Database& database, const std::vector<std::int64_t>& compile_ids) {
  ASSIGN_OR_RETURN(
      const FirstRow<CompilesWithSuppressedErrors> suppressed,
      First(Query<CompilesWithSuppressedErrors>(database, {.compile_ids = compile_ids})));
  return suppressed->compiles == static_cast<std::int64_t>(compile_ids.size());
}

}  // namespace tlparse
