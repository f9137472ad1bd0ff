#include "facts/compiles/eager_compiles.h"

#include "facts/compiles/advice.h"
#include "queries/facts/compiles/eager_compiles.h"

namespace tlparse {

Result<std::set<std::int64_t>> CompilesRunEagerly(Database& database, const Job& job) {
  std::set<std::int64_t> eager;
  FOR_EACH_ROW(const BreakOfLog& row,
               Query<BreakOfLog>(database, {.in_logs = job.InLogs("g.record_id")})) {
    const JobCompile* compile = job.FindCompile(row.compile_id);
    if (compile == nullptr) continue;
    if (IsSkippedFunction(row.reason) || compile->status == CompileStatus::kSkipped ||
        (compile->status == CompileStatus::kFailed && row.is_unsupported))
      eager.insert(compile->id);
  }
  return eager;
}

Result<bool> AreErrorsSuppressed(Database& database, const std::vector<std::int64_t>& compile_ids) {
  ASSIGN_OR_RETURN(
      const FirstRow<CompilesWithSuppressedErrors> suppressed,
      First(Query<CompilesWithSuppressedErrors>(database, {.compile_ids = compile_ids})));
  return suppressed->compiles == static_cast<std::int64_t>(compile_ids.size());
}

}  // namespace tlparse
