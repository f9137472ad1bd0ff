// The tables of a fleet, derived from the tables of the database: tables that a new artifact adds
// to schemas/sql are included automatically.
//
//   facts     one row per row of the database, keyed by job, day, run, load; strings are in the row,
//             ids are those of the database the load was pushed from
//   contents  rows below `content`, by the 128-bit hash of that content, once for all runs
//   others    payloads, cache components and sets by hash, `push`: schemas/clickhouse/fleet.sql
//
// A table is named like its view, without "_row".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// What the id in a column refers to, if it needs translation.
enum class ColumnReference {
  kNone,
  kText,     // the string is in the row
  kContent,  // followed by the hash
  kPayload,
  kComponentSet,
  kKey,    // cache_key
  kOwned,  // row of a content, by its number within it; followed by the content's hash
  kFact,   // row of another table of facts
};

struct FleetColumn {
  enum class Type { kInt, kReal, kText, kAny, kHash };
  // Where the value comes from.
  enum class Source {
    kColumn,          // column `sqlite_column`; of ColumnReference::kText the string
    kHash,            // hash of what `sqlite_column` refers to
    kPayloadContent,  // hash of the content of the payload
    kIsBlob,          // of a column of any type: 0 text or NULL, 1 blob, 2 integer, 3 real
    kProcess,         // process.id the row belongs to; NULL: none
    kProcessRank,
    kFunction,  // of the compile the row belongs to; empty: none
    kLabel,
    kDirection,      // of the graph
    kGeneration,     // of the compile: how often its label had been used before; 0: none
    kCompileUs,      // how long the compile took
    kLookupOrdinal,  // number of the lookup among those of its compile, layer and direction
  };
  std::string name;
  Type type = Type::kInt;
  Source source = Source::kColumn;
  bool is_nullable = false;
  int sqlite_column = -1;  // index into FleetTable::sqlite_columns
};

struct SqliteColumn {
  std::string name;
  ColumnReference reference = ColumnReference::kNone;
  std::string referenced;  // the table, without "_row"; empty: none
  bool is_nullable = true;
  int key_ordinal = 0;  // 1-based place in the primary key; 0: not part of it
};

struct FleetTable {
  enum class Kind {
    kFact,     // belongs to a process or to the run
    kPool,     // rows that facts refer to: strings, stacks, contents, keys
    kContent,  // belongs to a content
  };
  std::string name;
  std::string sqlite_name;
  Kind kind = Kind::kFact;
  std::vector<SqliteColumn> sqlite_columns;
  std::vector<FleetColumn> columns;   // after the key columns
  std::vector<std::string> order_by;  // after the key columns
  bool has_id = false;                // an integer primary key "id"
  int FindSqlite(std::string_view column) const;
};

struct FleetSchema {
  // Tables that others refer to come first.
  std::vector<FleetTable> tables;
  const FleetTable* Find(std::string_view name) const;
};

// The name without "_row".
std::string_view PublicName(std::string_view table);

// The fleet's tables for the schema of this program.
Result<FleetSchema> MakeFleetSchema();

// Columns that end in "_id" and are neither declared as references nor known otherwise, as
// "table.column": a new one must be declared, else a pull of several loads would mix up ids.
Result<std::vector<std::string>> UnexplainedIds();

// Key columns that precede a fact's or a content's own.
inline constexpr std::string_view kFactKey[] = {"job", "day", "run_id", "load_id"};

// Type of a column in ClickHouse.
std::string ClickHouseType(const FleetColumn& column);

// Features of a server that not all versions have.
struct ServerFeatures {
  int year = 18;  // of its version
  bool HasCodecs() const { return year >= 20; }
};

struct TableDefinition {
  std::string name;
  // name and type, in order
  std::vector<std::pair<std::string, std::string>> columns;
  std::string engine;  // ENGINE … ORDER BY …
};
// Everything that `fleet init` creates. `retention_days` 0: kept until deleted.
Result<std::vector<TableDefinition>> TableDefinitions(const FleetSchema& schema,
                                                      const ServerFeatures& features,
                                                      int retention_days);
std::string CreateStatement(const TableDefinition& table, const std::string& database);

}  // namespace tlparse
