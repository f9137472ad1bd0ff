#include "inputs/torch_logs/failure_rows.h"

#include <string>

#include "base/utf8.h"
#include "inputs/common/exception_row.h"
#include "rows/uncaught_exception.h"
#include "rows/watchdog.h"

namespace tlparse {

bool FailureTexts::Add(std::string_view line, std::int64_t number) {
  return nccl.Add(line, number) || aborts.Add(line, number) || failures.Add(line, number);
}

void AddFailureRows(RuntimeContext& context, const FailureTexts& texts) {
  for (const PrintedTraceback& one : texts.failures.tracebacks) {
    ++context.facts().kept_count;
    AddException(context, {.line = one.line, .rank = one.rank}, one.text);
  }
  for (const LauncherFailure& one : texts.failures.failures) {
    if (!one.exit_code) continue;
    ++context.facts().kept_count;
    LauncherFailureRow row{.id = context.NextId<LauncherFailureRow>(),
                           .profile_id = context.profile_id(),
                           .line = one.line,
                           .launcher = RowText(one.launcher),
                           .is_out_of_memory = one.is_out_of_memory};
    if (!one.process.empty()) row.process = RowText(one.process);
    row.rank = one.rank;
    row.local_rank = one.local_rank;
    row.pid = one.pid;
    row.exit_code = one.exit_code;
    context.rows().Add(row);
  }
  for (const auto& [name, process] : texts.tracebacks.processes()) {
    const auto add = [&, &named = name, &of = process](const LastTraceback::Found& one) {
      ExceptionPlace place{.line = one.line,
                           .rank = texts.failures.RankOfLocal(of.local_rank),
                           .thread = one.thread};
      // Which of a launcher's processes wrote it, its lines do not say.
      if (!named.empty() || one.is_of_launcher)
        place.process_name = named.empty() ? "A process" : SanitizeUtf8(named);
      AddException(context, place, one.text);
    };
    for (const LastTraceback::Found& one : process.last.others()) {
      ++context.facts().kept_count;
      add(one);
    }
    if (const LastTraceback::Found* const last = process.last.found()) add(*last);
  }
  for (const NcclWarning& one : texts.nccl.Warnings()) {
    ++context.facts().kept_count;
    const std::string host = SanitizeUtf8(one.host), said = SanitizeUtf8(one.text);
    NcclWarningRow row{.id = context.NextId<NcclWarningRow>(),
                       .profile_id = context.profile_id(),
                       .line = one.line,
                       .host = RowText(host),
                       .pid = one.pid,
                       .device = one.device,
                       .is_of_peer = one.is_of_peer,
                       .text = RowText(said)};
    row.rank = one.rank;
    context.rows().Add(row);
  }
  for (const AbortText& one : texts.aborts.texts) {
    ++context.facts().kept_count;
    AddAbort(context, one);
  }
}

}  // namespace tlparse
