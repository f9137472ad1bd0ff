#include "facts/compiles/recompile_reasons.h"

#include <fmt/format.h>

namespace tlparse {

Result<std::vector<FailedEntry>> LoadFailedEntries(Database& database, std::int64_t compile_id) {
  ASSIGN_OR_RETURN(
      Statement* const kept,
      database.PrepareKept(
          "SELECT p.text, g.text, r.text, f.text, m.user_line "
          "FROM recompile_row m LEFT JOIN text_row p ON p.id = m.prior_label_id "
          "LEFT JOIN text_row g ON g.id = m.guard_id LEFT JOIN text_row r ON r.id = m.reason_id "
          "LEFT JOIN text_row f ON f.id = m.user_file_id "
          "WHERE m.compile_id = ? ORDER BY m.record_id, m.ordinal"));
  Statement& rows = *kept;
  rows.Bind(1, compile_id);
  std::vector<FailedEntry> entries;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return entries;
    // A reason that could not be taken apart is shown whole.
    const std::string_view guard = rows.IsNull(1) ? rows.Text(2) : rows.Text(1);
    entries.push_back({std::string(rows.Text(0)),
                       ParseRecompileReason(guard, rows.Text(2), rows.Text(3), rows.Int(4)),
                       std::string(rows.Text(3)), rows.Int(4)});
  }
}

std::string FailedEntriesText(const std::vector<FailedEntry>& entries, std::string_view before) {
  std::string text;
  for (const FailedEntry& entry : entries) {
    if (!text.empty()) text += "; ";
    if (!entry.label.empty()) text += fmt::format("{}{}: ", before, entry.label);
    text += entry.reason.text;
  }
  return text;
}

}  // namespace tlparse
