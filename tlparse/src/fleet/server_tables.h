// The version and tables of a server; creates and checks the tables.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/clickhouse_client.h"
#include "fleet/fleet_schema.h"

namespace tlparse {

Result<ServerFeatures> ReadFeatures(ClickHouseClient& client);

struct InitOptions {
  int retention_days = 0;  // 0: kept until deleted
  // Of remote_servers in the server's configuration: also makes a Distributed table "<name>_all"
  // for each table. Empty: none.
  std::string cluster;
};
struct InitSummary {
  std::vector<std::string> made_tables;
  std::vector<std::string> added_columns;  // "table.column"
  std::size_t table_count = 0;
  bool has_retention = false;  // the server can delete old rows itself
};
// Creates the database and the tables that are missing, and adds missing columns; changes nothing
// else, so it may be repeated. `options.database` of the client need not exist yet.
Result<InitSummary> InitServer(const ClickHouseOptions& client_options, const InitOptions& options);

// kRefused, with advice, unless the server has every table and column that this program writes.
Result<void> CheckServerTables(ClickHouseClient& client, const FleetSchema& schema);

// Whether answers must use the tables "<name>_all" (all shards).
Result<bool> HasDistributedTables(ClickHouseClient& client);

// The server's clock, seconds since 1970: clocks of hosts may be wrong.
Result<std::int64_t> ServerNowS(ClickHouseClient& client);

// Lines of an answer in TabSeparated, unescaped. Invalid rows are an error.
Result<std::vector<std::vector<std::string>>> ParseTabSeparated(std::string_view answer,
                                                                std::size_t columns);

}  // namespace tlparse
