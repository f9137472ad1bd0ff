// The tables that a server gets: those of the database, and those that only a fleet has.
#include <fmt/format.h>

#include "fleet/fleet_schema.h"
#include "fleet/sql_quote.h"

namespace tlparse {
namespace {

using Columns = std::vector<std::pair<std::string, std::string>>;

class Definitions {
 public:
  Definitions(const ServerFeatures& features, int retention_days)
      : features_(features), retention_days_(retention_days) {}

  std::string Short() const { return features_.HasCodecs() ? "LowCardinality(String)" : "String"; }
  std::string Long() const { return features_.HasCodecs() ? "String CODEC(ZSTD(1))" : "String"; }
  std::string TypeOf(const FleetColumn& column, bool is_pooled) const {
    if (column.type != FleetColumn::Type::kText || !features_.HasCodecs())
      return ClickHouseType(column);
    if (is_pooled) return fmt::format("LowCardinality({})", ClickHouseType(column));
    return ClickHouseType(column) + " CODEC(ZSTD(1))";
  }
  Columns FactKey() const {
    return {{"job", Short()}, {"day", "Date"}, {"run_id", "UUID"}, {"load_id", "UInt64"}};
  }
  std::string FactEngine(const std::string& order) const {
    std::string engine =
        fmt::format("ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY ({})", order);
    if (retention_days_ > 0 && features_.HasCodecs())
      engine += fmt::format(" TTL day + INTERVAL {} DAY", retention_days_);
    return engine;
  }
  static std::string ContentEngine(const std::string& order) {
    return fmt::format("ENGINE = ReplacingMergeTree ORDER BY ({})", order);
  }

 private:
  const ServerFeatures& features_;
  int retention_days_;
};

// What is not a table of the database.
constexpr const char* kHash = "FixedString(16)";

// Tables with a row for each load or run.
std::vector<TableDefinition> LoadTables(const Definitions& make) {
  std::vector<TableDefinition> tables;
  // The last row of a push: what it says is there, and nothing else is.
  Columns push = make.FactKey();
  push.insert(push.end(), {{"version", "UInt64"},
                           {"state", "UInt8"},
                           {"replaces", "Array(UInt64)"},
                           {"pushed_us", "Int64"},
                           {"run_name", "String"},
                           {"source_uuid", "UUID"},
                           {"job_key", "String"},
                           {"host", "String"},
                           {"start_us", "Int64"},
                           {"torch_versions", "Array(String)"},
                           {"ranks", "UInt64"},
                           {"tag_keys", "Array(String)"},
                           {"tag_values", "Array(String)"},
                           {"log_hashes", "Array(FixedString(16))"},
                           {"log_paths", "Array(String)"},
                           {"tables", "Array(String)"},
                           {"row_counts", "Array(UInt64)"},
                           {"plain_bytes", "UInt64"},
                           {"has_records", "UInt8"},
                           {"has_text", "UInt8"},
                           {"is_partial", "UInt8"},
                           {"tool_version", "String"},
                           {"schema_version", "UInt64"},
                           {"content_version", "UInt64"}});
  tables.push_back({"push", push, make.FactEngine("job, day, run_id, load_id, version")});
  Columns run_component = make.FactKey();
  run_component.insert(run_component.end(),
                       {{"name", make.Short()}, {"component", kHash}, {"value_hash", kHash}});
  tables.push_back({"run_component", run_component,
                    make.FactEngine("job, day, run_id, load_id, name, component")});
  // Findings of a run as derived from all of its live loads; load_id is the latest of them. Row -1
  // of a run says that the others are complete.
  Columns finding = make.FactKey();
  finding.insert(finding.end(), {{"loads_key", kHash},
                                 {"ordinal", "Int64"},
                                 {"id", "String"},
                                 {"severity", make.Short()},
                                 {"kind", make.Short()},
                                 {"title", make.Long()},
                                 {"file", "Nullable(String)"},
                                 {"line", "Nullable(Int64)"},
                                 {"rank_count", "Int64"}});
  tables.push_back(
      {"finding", finding, make.FactEngine("job, day, run_id, load_id, loads_key, ordinal")});
  return tables;
}

// Tables of texts and cache components that runs share.
std::vector<TableDefinition> SharedTables(const Definitions& make) {
  std::vector<TableDefinition> tables;
  tables.push_back({"payload",
                    {{"content_hash", kHash},
                     {"hash", kHash},
                     {"size_bytes", "Int64"},
                     {"content", make.Long()},
                     {"is_blob", "UInt8"}},
                    Definitions::ContentEngine("content_hash, hash")});
  tables.push_back({"component",
                    {{"key", kHash},
                     {"value_hash", kHash},
                     {"name", make.Short()},
                     {"hash", "Nullable(String)"},
                     {"value", make.Long()}},
                    Definitions::ContentEngine("key, value_hash")});
  tables.push_back({"component_hash",
                    {{"component", kHash}, {"device_index", "Int64"}, {"hash", "String"}},
                    Definitions::ContentEngine("component, device_index")});
  tables.push_back(
      {"component_set",
       {{"key", kHash}, {"first_hash", kHash}, {"components", "Array(FixedString(16))"}},
       Definitions::ContentEngine("key")});
  tables.push_back(
      {"stored_content",
       {{"content_hash", kHash}, {"content_version", "UInt64"}, {"kind", make.Short()}},
       Definitions::ContentEngine("content_hash, content_version")});
  tables.push_back({"schema_version",
                    {{"version", "UInt64"}, {"tool_version", "String"}, {"made_us", "Int64"}},
                    "ENGINE = MergeTree ORDER BY (version, made_us)"});
  return tables;
}

TableDefinition Define(const FleetTable& table, const Definitions& make) {
  TableDefinition definition;
  definition.name = table.name;
  const bool is_content = table.kind == FleetTable::Kind::kContent;
  if (is_content) {
    definition.columns = {{"content_hash", "FixedString(16)"}, {"content_version", "UInt64"}};
  } else {
    definition.columns = make.FactKey();
  }
  for (const FleetColumn& column : table.columns) {
    const bool is_pooled =
        column.source == FleetColumn::Source::kFunction ||
        column.source == FleetColumn::Source::kLabel ||
        column.source == FleetColumn::Source::kDirection ||
        (column.sqlite_column >= 0 &&
         table.sqlite_columns[static_cast<std::size_t>(column.sqlite_column)].reference ==
             ColumnReference::kText);
    definition.columns.emplace_back(column.name, make.TypeOf(column, is_pooled));
  }
  std::string order;
  if (is_content) {
    order = "content_hash, content_version";
  } else {
    order = "job, day, run_id, load_id";
  }
  for (const std::string& name : table.order_by) order += ", " + QuoteName(name);
  definition.engine = is_content ? Definitions::ContentEngine(order) : make.FactEngine(order);
  return definition;
}

}  // namespace

Result<std::vector<TableDefinition>> TableDefinitions(const FleetSchema& schema,
                                                      const ServerFeatures& features,
                                                      int retention_days) {
  const Definitions make(features, retention_days);
  std::vector<TableDefinition> tables = LoadTables(make);
  for (TableDefinition& table : SharedTables(make)) tables.push_back(std::move(table));
  for (const FleetTable& table : schema.tables) tables.push_back(Define(table, make));
  return tables;
}

std::string CreateStatement(const TableDefinition& table, const std::string& database) {
  std::string sql =
      fmt::format("CREATE TABLE IF NOT EXISTS {}.{} (", QuoteName(database), QuoteName(table.name));
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    sql += fmt::format("{}\n  {} {}", i == 0 ? "" : ",", QuoteName(table.columns[i].first),
                       table.columns[i].second);
  return sql + "\n) " + table.engine;
}

}  // namespace tlparse
