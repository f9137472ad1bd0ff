// Sends rows that runs share, by hash: contents with their rows, payloads, cache components, sets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "fleet/clickhouse_client.h"
#include "fleet/fleet_schema.h"
#include "fleet/push_context.h"
#include "fleet/row_source.h"
#include "fleet/table_insert.h"

namespace tlparse {

// Sends the rows that the context has recorded as used and that the server does not have yet. A
// null client sends nothing.
class ContentPusher {
 public:
  ContentPusher(ClickHouseClient* client, PushContext& context, const FleetSchema& schema,
                const RowOptions& options, std::uint64_t content_version, PushCounters& counters)
      : client_(client),
        context_(context),
        schema_(schema),
        options_(options),
        content_version_(content_version),
        counters_(counters) {}

  // First the rows of contents, then the row that marks them as complete.
  Result<void> PushContents();
  Result<void> PushPayloads();
  Result<void> PushComponents();
  // Facts: which components the run's keys are made of, behind the key columns.
  Result<void> PushRunComponents(const std::string& key_bytes, TableInsert& insert);

 private:
  using Hashes = std::vector<Hash128>;
  // Those of `hashes` for which `sql` (ending in "IN ") returns a row.
  Result<std::vector<Hash128>> Known(const std::string& sql, const Hashes& hashes);
  Result<void> PushComponentRows(const IdSet& components);
  Result<void> PushComponentHashes(const IdSet& components);
  Result<void> PushSets();

  ClickHouseClient* client_;
  PushContext& context_;
  const FleetSchema& schema_;
  const RowOptions& options_;
  std::uint64_t content_version_;
  PushCounters& counters_;
};

}  // namespace tlparse
