// The SQL console of the page: queries are read-only and bounded in time, rows and bytes.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "report/server.h"
#include "store/database.h"

namespace tlparse {

class SqlConsole {
 public:
  // `database` is opened read-only, used by nothing else, and outlives the console.
  SqlConsole(Database& database, const ServerOptions& options);

  // The answer as JSON (schemas/json/viewer/sql_answer.schema.json). kUsage: the query is invalid,
  // is not a query, or takes too long; the message says which.
  Result<std::string> Run(std::string_view sql);

 private:
  Database* database_;
  ServerOptions options_;
};

}  // namespace tlparse
