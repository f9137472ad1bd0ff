#include "store/import_log.h"

#include "base/utf8.h"

namespace tlparse {

void ImportLog::Add(RowBatch& rows, std::optional<std::int64_t> log_file_id,
                    const ImportPlace& place, ImportCode code, std::string_view message,
                    std::string_view text, std::int64_t line_count) {
  std::optional<StaticAny> kept;
  if (!text.empty()) kept = StaticAny{rows.arena().Copy(text), IsTextSafe(text)};
  const std::int64_t code_id = static_cast<std::int64_t>(code);
  if (IsTextSafe(message)) {
    rows.Add(table_, next_id_++, run_id_, log_file_id, place.record_id, place.line,
             place.byte_offset, code_id, message, kept, line_count, place.profile_id);
  } else {
    rows.Add(table_, next_id_++, run_id_, log_file_id, place.record_id, place.line,
             place.byte_offset, code_id, SanitizeUtf8(message), kept, line_count, place.profile_id);
  }
}

}  // namespace tlparse
