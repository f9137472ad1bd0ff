// What text of processes alone tells: recompiles, the recompile limit, graph breaks; and NCCL's watchdog.
#include "queries/findings/torch_logs.h"

#include <fmt/format.h>

#include <string_view>

#include "artifacts/common/text/python_traceback.h"
#include "base/plural.h"
#include "findings/context.h"
#include "findings/graph_breaks.h"
#include "findings/text_recompiles.h"
#include "findings/watchdog.h"

namespace tlparse {
namespace {

void AddTextBreaks(FindingContext& context, const TextGraphBreaks& row) {
  const std::string_view reason = row.reason.empty() ? row.message : row.reason;
  const FindingPlace site{std::string(row.file), row.user_line, {}};
  // A text of TORCH_LOGS shows only the innermost frame of the stack.
  Finding& finding =
      context.Add(FindingKind::kGraphBreak, !row.file.empty() && IsTorchFile(row.file)
                                                ? FindingSeverity::kNote
                                                : SeverityOfBreak(reason, site));
  std::string at;
  if (!row.file.empty()) {
    finding.place = site;
    at = fmt::format(" at {}:{}", row.file.substr(row.file.rfind('/') + 1), row.user_line);
  }
  finding.title =
      fmt::format("{} graph break{}{}{}, by the text of TORCH_LOGS: {}",
                  row.times == 1 ? "One" : fmt::format("{}", row.times), PluralS(row.times), at,
                  OnEach(row.processes, row.least, row.times), reason);
  SetTextRanks(row.ranks.value_or(""), row.processes, finding);
  finding.cause = std::string(reason);
  finding.detail = fmt::format("From {}; no structured trace of its process is among the input.",
                               TextsOf(row.path, row.paths));
  finding.suggestion = row.hint.empty() ? "TORCH_TRACE=<directory> records each with PyTorch's hint"
                                        : std::string(row.hint);
  finding.query = fmt::format(
      "SELECT t.* FROM torch_log_graph_break t JOIN profile p ON p.id = t.profile_id "
      "WHERE p.run_id = {}",
      context.job.run_id());
}

}  // namespace

Result<void> FindInTorchLogs(FindingContext& context) {
  const std::int64_t run_id = context.job.run_id();
  RETURN_IF_ERROR(FindRecompilesInText(context));
  FOR_EACH_ROW(const TextGraphBreaks& row,
               Query<TextGraphBreaks>(context.database, {.run_id = run_id}))
    AddTextBreaks(context, row);
  return FindInWatchdog(context);
}

}  // namespace tlparse
