#include "fleet/row_filter.h"

#include <fmt/format.h>

#include "store/text_pool.h"

namespace tlparse {

std::string RowsThatAnswersRead(const FleetTable& table, const RowOptions& options) {
  if (options.with_records) return {};
  constexpr std::string_view kUnpaired =
      "SELECT record_id FROM chromium_event_row WHERE phase IN (66, 69)";
  // Whether an unfinished compile has events shows whether its log ends inside it.
  if (table.name == "chromium_event")
    return "(r.phase IN (66, 69) OR r.compile_id IN (SELECT id "
           "FROM compile WHERE status = 'unfinished'))";
  if (table.name == "record")
    return fmt::format(
        "(r.kind_id IS NULL OR r.kind_id > {} OR r.id IN ({}) OR r.id IN (SELECT last_record_id "
        "FROM compile UNION SELECT last_record_id FROM process))",
        static_cast<int>(kTextCreateUnbackedSymbol), kUnpaired);
  return {};
}

}  // namespace tlparse
