#include "report/viewer/sql.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/json_writer.h"
#include "facts/text/nearest_name.h"

namespace tlparse {
namespace {

using Clock = std::chrono::steady_clock;

// Pragmas that describe tables; all others could change how the connection behaves.
constexpr std::array<const char*, 7> kPragmas = {"table_info",  "table_xinfo", "table_list",
                                                 "index_list",  "index_info",  "foreign_key_list",
                                                 "user_version"};

int Authorize(void*, int action, const char* first, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return second != nullptr && strcasecmp(second, "load_extension") == 0 ? SQLITE_DENY
                                                                            : SQLITE_OK;
    case SQLITE_PRAGMA:
      return std::any_of(kPragmas.begin(), kPragmas.end(),
                         [&](const char* name) { return strcasecmp(name, first) == 0; })
                 ? SQLITE_OK
                 : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

int IsOverdue(void* deadline) {
  return Clock::now() > *static_cast<Clock::time_point*>(deadline) ? 1 : 0;
}

// JavaScript's numbers are exact up to here.
constexpr std::int64_t kExact = std::int64_t{1} << 53;

void AppendCell(JsonWriter& json, Statement& row, int column) {
  switch (row.ColumnType(column)) {
    case SQLITE_NULL:
      json.Null();
      return;
    case SQLITE_FLOAT:
      json.Real(row.Real(column));
      return;
    case SQLITE_INTEGER: {
      const std::int64_t value = row.Int(column);
      value > kExact || value < -kExact ? json.String(fmt::format("{}", value)) : json.Int(value);
      return;
    }
    default:
      json.String(row.Text(column));
  }
}

// Names are looked up with more than a query may use.
Error Explain(Database& database, Error error) {
  sqlite3_set_authorizer(database.handle(), nullptr, nullptr);
  error = {ErrorCode::kUsage, WithNearestName(database, std::move(error.message))};
  sqlite3_set_authorizer(database.handle(), &Authorize, nullptr);
  return error;
}

Error Usage(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

}  // namespace

SqlConsole::SqlConsole(Database& database, const ServerOptions& options)
    : database_(&database), options_(options) {
  sqlite3* handle = database.handle();
  // What a query sorts or collects goes to a file where it is much.
  (void)database.Execute("PRAGMA temp_store = FILE; PRAGMA cache_size = -8192").has_value();
  sqlite3_set_authorizer(handle, &Authorize, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, 256 << 20);
}

Result<std::string> SqlConsole::Run(std::string_view sql) {
  const auto start = Clock::now();
  auto deadline = start + std::chrono::milliseconds(options_.sql_time_limit_ms);
  sqlite3* handle = database_->handle();
  sqlite3_progress_handler(handle, 10000, &IsOverdue, &deadline);
  struct Reset {
    sqlite3* handle;
    ~Reset() { sqlite3_progress_handler(handle, 0, nullptr, nullptr); }
  } reset{handle};
  const auto explain = [&](Error error) {
    if (Clock::now() > deadline) {
      return Usage(fmt::format(
          "stopped after {} s: narrow the query, or run it with tlparse sql, which has no limit",
          options_.sql_time_limit_ms / 1000));
    }
    const int code = sqlite3_errcode(handle);
    if (code == SQLITE_AUTH)
      return Usage("only queries are allowed here: SELECT, WITH, VALUES, EXPLAIN");
    return Explain(*database_, std::move(error));
  };
  auto prepared = database_->Prepare(sql);
  if (!prepared) return tl::unexpected<Error>(explain(std::move(prepared).error()));
  Statement& statement = *prepared;
  if (statement.handle() == nullptr) return tl::unexpected<Error>(Usage("there is no query"));
  const std::size_t used = std::string_view(sqlite3_sql(statement.handle())).size();
  if (sql.substr(std::min(used, sql.size())).find_first_not_of(" \t\r\n;") !=
      std::string_view::npos) {
    return tl::unexpected<Error>(Usage("give one query at a time"));
  }
  JsonWriter json;
  json.BeginObject().Key("columns").BeginArray();
  for (int i = 0; i < statement.column_count(); ++i) json.String(statement.ColumnName(i));
  json.EndArray().Key("rows").BeginArray();
  bool is_truncated = false;
  for (std::int64_t rows = 0;; ++rows) {
    auto has_row = statement.Step();
    if (!has_row) return tl::unexpected<Error>(explain(std::move(has_row).error()));
    if (!*has_row) break;
    if (rows == options_.sql_row_limit ||
        static_cast<std::int64_t>(json.text().size()) > options_.sql_byte_limit) {
      is_truncated = true;
      break;
    }
    json.BeginArray();
    for (int i = 0; i < statement.column_count(); ++i) AppendCell(json, statement, i);
    json.EndArray();
  }
  statement.Reset();
  const std::chrono::duration<double, std::milli> elapsed = Clock::now() - start;
  json.EndArray()
      .Key("is_truncated")
      .Bool(is_truncated)
      .Key("elapsed_ms")
      .Real(elapsed.count())
      .EndObject();
  return json.Take();
}

}  // namespace tlparse
