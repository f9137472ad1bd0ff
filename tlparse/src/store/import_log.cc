#include "store/import_log.h"

#include <string>

#include "base/utf8.h"
#include "rows/core.h"

namespace tlparse {

ImportLog::ImportLog(TableSet& tables) { tables.Use<ImportLogRow>(); }

void ImportLog::Add(RowBatch& rows, std::optional<std::int64_t> log_file_id,
                    const ImportPlace& place, ImportCode code, std::string_view message,
                    std::string_view text, std::int64_t line_count) {
  std::optional<StaticAny> kept;
  if (!text.empty()) kept = StaticAny{rows.arena().Copy(text), IsTextSafe(text)};
  std::optional<std::string> path;
  if (!place.path.empty()) path = SanitizeUtf8(place.path);
  std::string sanitized;
  if (!IsTextSafe(message)) message = sanitized = SanitizeUtf8(message);
  rows.Add(ImportLogRow{.id = next_id_++,
                        .run_id = run_id_,
                        .log_file_id = log_file_id,
                        .record_id = place.record_id,
                        .line = place.line,
                        .byte_offset = place.byte_offset,
                        .code_id = static_cast<std::int64_t>(code),
                        .message = message,
                        .text = kept,
                        .line_count = line_count,
                        .profile_id = place.profile_id,
                        .path = path});
}

}  // namespace tlparse
