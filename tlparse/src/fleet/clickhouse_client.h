// A client of one ClickHouse server over HTTP or HTTPS: queries, streamed answers, inserts,
// retries.
//
// Data from a server is not trusted: answers have a size limit and are not executed, no redirect is
// followed, and text is escaped before it is printed. Credentials are sent in headers only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "fleet/server_error.h"

namespace tlparse {

struct ClickHouseOptions {
  std::string url;  // https://host:8443, http://127.0.0.1:8123
  std::string database = "tlparse";
  std::string ca_file;          // PEM; empty: the system's authorities
  bool allow_insecure = false;  // plain http beyond this machine
  std::string user = "default";
  std::string password;
  // For all attempts of one request together, as long as the server is silent, busy or not reached.
  // Time in which it says that it works on the request does not count.
  std::chrono::milliseconds patience{600'000};
};

// User and password: from `file` (lines "user=…", "password=…"; only its owner may read it: mode
// 0600), else from TLPARSE_CLICKHOUSE_USER and TLPARSE_CLICKHOUSE_PASSWORD, else "default" without
// a password. kNotFound, kIo, kRefused: the file is missing, unreadable, or readable by others.
Result<void> ReadCredentials(const std::string& file, ClickHouseOptions& options);

// Not thread-safe; one connection, opened when needed and kept.
class ClickHouseClient {
 public:
  // kUsage: the URL is invalid, has credentials, or is plain http to another machine.
  static Result<ClickHouseClient> Make(const ClickHouseOptions& options);
  ClickHouseClient(ClickHouseClient&&) noexcept;
  ClickHouseClient& operator=(ClickHouseClient&&) noexcept;
  ~ClickHouseClient();

  // The whole answer of a query, with retries. kIo: the server is not reached; kRefused: it
  // refuses.
  Result<std::string> Query(std::string_view sql);
  // The same as a stream, without retries: `receive` gets pieces of the answer and returns false to
  // stop (kIo). The error of a query that fails after its first row is text within the answer: the
  // caller must check the data.
  Result<void> Stream(std::string_view sql, const std::function<bool(std::string_view)>& receive);
  // One attempt of an INSERT with a gzip body, the first of which began at `began`. The same body may
  // be sent again.
  ServerResult<void> TryInsert(const std::string& sql, const std::string& gzip,
                               std::chrono::steady_clock::time_point began);

  // Waits before another attempt; false: `patience` is used up. `attempt` counts from 1.
  bool WaitToRetry(int attempt, std::chrono::steady_clock::time_point began);
  Error ToError(const ClickHouseError& error) const;

  const std::string& database() const;
  const std::string& url() const;

 private:
  struct Connection;
  explicit ClickHouseClient(std::unique_ptr<Connection> connection);
  // One attempt of a statement.
  ServerResult<std::string> TryQuery(std::string_view sql,
                                     std::chrono::steady_clock::time_point began);
  std::unique_ptr<Connection> connection_;
};

}  // namespace tlparse
