// The database that nsys exports, and its rows.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tlparse {

// A read-only connection to an untrusted database.
class NsysExport {
 public:
  static Result<NsysExport> Open(const std::string& path);
  // A database in memory, which must outlive the connection.
  static Result<NsysExport> OpenBytes(unsigned char* data, std::size_t size);
  bool Has(const std::string& table) { return !Columns(table).empty(); }
  // The column, or NULL where the table has none of that name.
  std::string Column(const std::string& table, const std::string& column, const std::string& alias);
  // Calls `row` for each row until it fails; kNotATrace with SQLite's message if the file is
  // damaged.
  template <typename Row>
  Result<void> Query(const std::string& sql, const Row& row) {
    sqlite3_stmt* statement = nullptr;
    int code = sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &statement, nullptr);
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> owner(statement, &sqlite3_finalize);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
      code = sqlite3_step(statement);
      if (code == SQLITE_DONE) return {};
      if (code == SQLITE_ROW) RETURN_IF_ERROR(row(statement));
    }
    return Fail(ErrorCode::kNotATrace, sqlite3_errmsg(handle_.get()));
  }

 private:
  struct Closer {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  explicit NsysExport(sqlite3* handle) : handle_(handle) {}
  const std::set<std::string>& Columns(const std::string& table);
  std::unique_ptr<sqlite3, Closer> handle_;
  std::map<std::string, std::set<std::string>> columns_;
};

// Shortened to 4 KiB.
std::string_view TextAt(sqlite3_stmt* row, int column);
std::optional<std::int64_t> IntAt(sqlite3_stmt* row, int column);

}  // namespace tlparse
