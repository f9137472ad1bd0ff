#include "findings/nccl_warnings.h"

#include <fmt/format.h>

#include "facts/text/shorten.h"
#include "queries/findings/nccl_warnings.h"

namespace tlparse {

Result<void> SayNcclWarning(const FindingContext& context, const FatalException& raised,
                            Finding& finding) {
  if (!raised.ComesOfPeer() && !raised.IsTimeout()) return {};
  ASSIGN_OR_RETURN(const FirstRow<NcclWarningOfOther> row,
                   First(Query<NcclWarningOfOther>(
                       context.database, {.run_id = context.job.run_id(), .rank = raised.rank})));
  if (!row) return {};
  constexpr std::size_t kMost = 200;
  const std::string who =
      row->rank ? fmt::format("rank {} (pid {} on {})", *row->rank, row->pid, row->host)
                : fmt::format("pid {} on {}", row->pid, row->host);
  finding.detail += fmt::format(" NCCL of {} warned in line {} of {}: {}.", who, row->line,
                                row->path, Shorten(row->text, kMost));
  finding.suggestion = fmt::format("look at {}, of which NCCL warned", who);
  return {};
}

}  // namespace tlparse
