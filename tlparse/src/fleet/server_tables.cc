#include "fleet/server_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/version.h"
#include "fleet/sql_quote.h"
#include "store/schema.h"

namespace tlparse {
namespace {

using ColumnsOfTable = std::map<std::string, std::set<std::string>>;

Result<ColumnsOfTable> ReadColumns(ClickHouseClient& client) {
  ASSIGN_OR_RETURN(
      const std::string answer,
      client.Query(fmt::format(
          "SELECT table, name FROM system.columns WHERE database = {} FORMAT TabSeparated",
          QuoteText(client.database()))));
  ASSIGN_OR_RETURN(const auto rows, ParseTabSeparated(answer, 2));
  ColumnsOfTable columns;
  for (const auto& row : rows) columns[row[0]].insert(row[1]);
  return columns;
}

std::int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Result<std::vector<std::vector<std::string>>> ParseTabSeparated(std::string_view answer,
                                                                std::size_t columns) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row(1);
  for (std::size_t i = 0; i < answer.size(); ++i) {
    const char c = answer[i];
    if (c == '\t') {
      row.emplace_back();
    } else if (c == '\n') {
      if (row.size() != columns)
        return Fail(ErrorCode::kRefused,
                    "the server's answer is not what was asked for: " + ExceptionText(answer));
      rows.push_back(std::move(row));
      row.assign(1, {});
    } else if (c == '\\' && i + 1 < answer.size()) {
      const char next = answer[++i];
      switch (next) {
        case 'n':
          row.back() += '\n';
          break;
        case 't':
          row.back() += '\t';
          break;
        case 'r':
          row.back() += '\r';
          break;
        case 'b':
          row.back() += '\b';
          break;
        case 'f':
          row.back() += '\f';
          break;
        case '0':
          row.back() += '\0';
          break;
        case 'N':
          row.back() += "\\N";  // NULL
          break;
        default:
          row.back() += next;
      }
    } else {
      row.back() += c;
    }
  }
  if (row.size() != 1 || !row.back().empty())
    return Fail(ErrorCode::kRefused, "the server's answer ends early: " + ExceptionText(answer));
  return rows;
}

Result<ServerFeatures> ReadFeatures(ClickHouseClient& client) {
  ASSIGN_OR_RETURN(const std::string version, client.Query("SELECT version() FORMAT TabSeparated"));
  ServerFeatures features;
  features.year = std::atoi(version.c_str());
  if (features.year < 18)
    return Fail(ErrorCode::kRefused, fmt::format("{} is of version {}: 18.16 or later is needed",
                                                 client.url(), ExceptionText(version)));
  return features;
}

Result<InitSummary> InitServer(const ClickHouseOptions& client_options,
                               const InitOptions& options) {
  ClickHouseOptions no_database = client_options;
  no_database.database = "default";
  ASSIGN_OR_RETURN(ClickHouseClient client, ClickHouseClient::Make(no_database));
  ASSIGN_OR_RETURN(const ServerFeatures features, ReadFeatures(client));
  const std::string& database = client_options.database;
  RETURN_IF_ERROR(client.Query("CREATE DATABASE IF NOT EXISTS " + QuoteName(database)));
  ASSIGN_OR_RETURN(client, ClickHouseClient::Make(client_options));
  ASSIGN_OR_RETURN(const FleetSchema schema, MakeFleetSchema());
  ASSIGN_OR_RETURN(const std::vector<TableDefinition> tables,
                   TableDefinitions(schema, features, options.retention_days));
  ASSIGN_OR_RETURN(const ColumnsOfTable there, ReadColumns(client));
  InitSummary summary;
  summary.table_count = tables.size();
  summary.has_retention = features.HasCodecs();
  for (const TableDefinition& table : tables) {
    const auto known = there.find(table.name);
    if (known == there.end()) {
      RETURN_IF_ERROR(client.Query(CreateStatement(table, database)));
      summary.made_tables.push_back(table.name);
    } else {
      for (const auto& [name, type] : table.columns) {
        if (known->second.count(name)) continue;
        RETURN_IF_ERROR(
            client.Query(fmt::format("ALTER TABLE {}.{} ADD COLUMN {} {}", QuoteName(database),
                                     QuoteName(table.name), QuoteName(name), type)));
        summary.added_columns.push_back(table.name + "." + name);
      }
    }
    if (options.cluster.empty()) continue;
    // A Distributed table has the columns it was made with: made again, it holds no rows itself.
    const std::string all = QuoteName(database) + "." + QuoteName(table.name + "_all");
    RETURN_IF_ERROR(client.Query("DROP TABLE IF EXISTS " + all));
    RETURN_IF_ERROR(client.Query(
        fmt::format("CREATE TABLE {} AS {}.{} ENGINE = Distributed({}, {}, {})", all,
                    QuoteName(database), QuoteName(table.name), QuoteName(options.cluster),
                    QuoteName(database), QuoteName(table.name))));
  }
  RETURN_IF_ERROR(
      client.Query(fmt::format("INSERT INTO {}.schema_version VALUES ({}, {}, {})",
                               QuoteName(database), kSchemaVersion, QuoteText(kVersion), NowUs())));
  return summary;
}

Result<void> CheckServerTables(ClickHouseClient& client, const FleetSchema& schema) {
  ASSIGN_OR_RETURN(const ColumnsOfTable there, ReadColumns(client));
  if (there.find("push") == there.end())
    return Fail(ErrorCode::kRefused,
                fmt::format("{} has no tables of a fleet in the database '{}': 'tlparse fleet init "
                            "--url {}' makes them, once, by an administrator",
                            client.url(), client.database(), client.url()));
  ASSIGN_OR_RETURN(const std::vector<TableDefinition> tables, TableDefinitions(schema, {}, 0));
  for (const TableDefinition& table : tables) {
    const auto known = there.find(table.name);
    std::string missing;
    if (known == there.end()) {
      missing = "the table " + table.name;
    } else {
      for (const auto& [name, type] : table.columns)
        if (!known->second.count(name)) missing = "the column " + table.name + "." + name;
    }
    if (!missing.empty())
      return Fail(
          ErrorCode::kRefused,
          fmt::format("{} lacks {}: an earlier tlparse made its tables; 'tlparse fleet init' "
                      "with this one adds what is missing",
                      client.url(), missing));
  }
  return {};
}

Result<std::int64_t> ServerNowS(ClickHouseClient& client) {
  ASSIGN_OR_RETURN(const std::string answer,
                   client.Query("SELECT toUnixTimestamp(now()) FORMAT TabSeparated"));
  const std::int64_t now_s = std::strtoll(answer.c_str(), nullptr, 10);
  if (now_s <= 0)
    return Fail(ErrorCode::kRefused, client.url() + " answered no time: " + ExceptionText(answer));
  return now_s;
}

Result<bool> HasDistributedTables(ClickHouseClient& client) {
  ASSIGN_OR_RETURN(const std::string answer,
                   client.Query(fmt::format("SELECT count() FROM system.tables WHERE database = {} "
                                            "AND name = 'push_all' FORMAT TabSeparated",
                                            QuoteText(client.database()))));
  return answer == "1\n";
}

}  // namespace tlparse
