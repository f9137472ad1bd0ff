// Reads the rows of one table of the database as rows of its table in a fleet.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/fleet_schema.h"
#include "fleet/push_context.h"
#include "fleet/table_insert.h"

namespace tlparse {

struct RowOptions {
  bool with_records = false;  // records and events that no answer reads
  bool with_text = true;      // false: hashes replace source code and its values
};

// Appends the rows of `table` that belong to the run (of pools: that were referred to) to `insert`,
// each preceded by `key_bytes`. Rows of processes must come before rows that refer to them.
// `on_row` is called from time to time with the number of rows read since the last call.
Result<void> WriteRows(PushContext& context, const FleetTable& table, const RowOptions& options,
                       const std::string& key_bytes, TableInsert& insert,
                       const std::function<void(std::uint64_t)>& on_row);

// Rows of the contents for which `is_wanted` returns true.
Result<void> WriteContentRows(PushContext& context, const FleetTable& table,
                              const RowOptions& options, std::uint64_t content_version,
                              const std::function<bool(std::int64_t)>& is_wanted,
                              TableInsert& insert);

}  // namespace tlparse
