// chromium_events.json: what the compiler's timeline viewers read.
#include <fmt/format.h>

#include "report/json_format.h"
#include "report/record_scan.h"
#include "report/report_context.h"
#include "store/database.h"
#include "store/text_pool.h"

namespace tlparse {

Result<void> WriteChromiumEvents(const ReportContext& context) {
  ASSIGN_OR_RETURN(Statement rows,
                   SelectRecords(context.database, context.participant, "p.content",
                                 "CROSS JOIN payload_row p ON p.id = r.payload_id",
                                 fmt::format("r.kind_id = {}", int{kTextChromiumEvent})));
  FileWriter out;
  RETURN_IF_ERROR(out.Open(context.directory, "chromium_events.json"));
  std::string event;
  bool is_first = true;
  out.Append('[');
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    event.clear();
    if (!AppendJson(rows.Text(0), JsonLayout::kCompact, event)) continue;
    out.Append(is_first ? "\n" : ",\n");
    out.Append(event);
    is_first = false;
  }
  out.Append(is_first ? "]" : "\n]");
  return out.Close();
}

}  // namespace tlparse
