#include "facts/cache/guard_contents.h"

#include "queries/facts/cache/guard_contents.h"

namespace tlparse {

Result<GuardContents> LoadGuardContents(Database& database, const Job& job) {
  GuardContents contents;
  FOR_EACH_ROW(const GuardTreeOfCompile& row,
               Query<GuardTreeOfCompile>(database, {.in_logs = job.InLogs("u.record_id")}))
    contents[row.compile_id.value_or(0)].push_back(row.content_id);
  return contents;
}

}  // namespace tlparse
