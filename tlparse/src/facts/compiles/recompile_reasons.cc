#include "facts/compiles/recompile_reasons.h"

#include <fmt/format.h>

#include "queries/facts/compiles/recompile_reasons.h"

namespace tlparse {

Result<std::vector<FailedEntry>> LoadFailedEntries(Database& database, std::int64_t compile_id) {
  std::vector<FailedEntry> entries;
  FOR_EACH_ROW(const FailedEntryOfCompile& row,
               KeptQuery<FailedEntryOfCompile>(database, {.compile_id = compile_id})) {
    // A reason that could not be taken apart is shown whole.
    const std::string_view guard = row.guard.value_or(row.reason);
    entries.push_back({std::string(row.prior_label),
                       ParseRecompileReason(guard, row.reason, row.user_file, row.user_line),
                       std::string(row.user_file), row.user_line});
  }
  return entries;
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

void ComparedValues::Add(const RecompileReason& reason) {
  if (!reason.value.empty()) values_[reason.subject + '\n' + reason.at].insert(reason.value);
}

std::size_t ComparedValues::CountOf(const RecompileReason& reason) const {
  const auto found = values_.find(reason.subject + '\n' + reason.at);
  return found == values_.end() ? 0 : found->second.size();
}

std::size_t ComparedValues::Telling(const std::vector<const RecompileReason*>& entries) const {
  constexpr std::size_t kLeastValues = 3;
  std::size_t telling = 0, most = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::size_t count = CountOf(*entries[i]);
    if (count > most && (i == 0 || count >= kLeastValues)) most = count, telling = i;
  }
  return telling;
}

}  // namespace tlparse
