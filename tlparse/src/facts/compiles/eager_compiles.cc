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

}  // namespace

Result<BrokenCompiles> FindBrokenCompiles(Database& database, const Job& job) {
  BrokenCompiles found;
  FOR_EACH_ROW(const BreakOfLog& row,
               Query<BreakOfLog>(database, {.in_logs = job.InLogs("g.record_id")})) {
    const JobCompile* compile = job.FindCompile(row.compile_id);
    if (compile == nullptr) continue;
    const bool has_failed = compile->status == CompileStatus::kFailed && row.is_unsupported;
    if (has_failed && CauseOfBreak(row.reason).starts_with("Observed exception"))
      found.raised.insert(compile->id);
    if (IsSkippedFunction(row.reason) || compile->status == CompileStatus::kSkipped || has_failed)
      found.eager.insert(compile->id);
  }
  KeepLast(job, found.raised);
  for (const std::int64_t one : found.raised) found.eager.erase(one);
  return found;
}

Result<bool> AreErrorsSuppressed(Database& database, const std::vector<std::int64_t>& compile_ids) {
  ASSIGN_OR_RETURN(
      const FirstRow<CompilesWithSuppressedErrors> suppressed,
      First(Query<CompilesWithSuppressedErrors>(database, {.compile_ids = compile_ids})));
  return suppressed->compiles == static_cast<std::int64_t>(compile_ids.size());
}

}  // namespace tlparse
