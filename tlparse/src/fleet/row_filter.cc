#include "fleet/row_filter.h"

#include <fmt/format.h>

#include "analysis/ranks/rank_facts.h"
#include "store/text_pool.h"

namespace tlparse {

std::string RowsThatAnswersRead(const FleetTable& table, const RowOptions& options) {
  if (options.with_records) return {};
  constexpr std::string_view kUnpaired =
      "SELECT record_id FROM chromium_event_row WHERE phase IN (66, 69)";
  // Whether an unfinished compile has events shows whether its log ends inside it; how long other
  // ranks were silent in that compile shows whether the end stands out.
  constexpr std::string_view kUnfinished = "SELECT label FROM compile WHERE status = 'unfinished'";
  if (table.name == "chromium_event")
    return fmt::format(
        "(r.phase IN (66, 69) OR r.duration_us >= {} OR r.compile_id IN (SELECT id "
        "FROM compile WHERE label IN ({})))",
        kLeastNamedEventUs, kUnfinished);
  if (table.name == "record")
    return fmt::format(
        "(r.kind_id IS NULL OR r.kind_id > {} OR r.kind_id IN ({}, {}) OR r.id IN ({}) "
        "OR r.id IN (SELECT last_record_id FROM compile UNION SELECT last_record_id FROM process) "
        "OR (EXISTS ({}) "
        "AND EXISTS (SELECT 1 FROM compile c WHERE c.process_id = r.process_id "
        "AND r.id BETWEEN c.first_record_id AND c.last_record_id AND c.label IN ({}))))",
        static_cast<int>(kTextCreateUnbackedSymbol), static_cast<int>(kTextDescribeTensor),
        static_cast<int>(kTextDescribeSource), kUnpaired, kUnfinished, kUnfinished);
  return {};
}

}  // namespace tlparse
