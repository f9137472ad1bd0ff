// Inserts rows into one table of a server: buffers, compresses, sends and retries.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/gzip_body.h"
#include "base/result.h"
#include "fleet/clickhouse_client.h"
#include "fleet/row_binary.h"

namespace tlparse {

struct PushCounters {
  std::uint64_t rows = 0;
  std::uint64_t plain_bytes = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t requests = 0;
  std::uint64_t retries = 0;
};

// Not thread-safe; one at a time for a client.
class TableInsert {
 public:
  // `columns`: names, in the order in which values are written. `count_sql` returns the number of
  // rows of this load in the table, to check whether a request whose answer was lost succeeded;
  // empty: rows may be inserted twice. A null client sends nothing (--dry-run).
  TableInsert(ClickHouseClient* client, const std::string& table,
              const std::vector<std::string>& columns, std::string count_sql,
              PushCounters& counters);

  // The current row: the caller appends its values.
  std::string& row() { return row_; }
  // Ends the row. Sends the buffered rows if they are enough for a request.
  Result<void> EndRow() {
    ++rows_;
    if (row_.size() < kBuffer && rows_ < kMostRows) return {};
    return Compress();
  }
  // Sends the rest.
  Result<void> Finish();

  std::uint64_t row_count() const { return done_ + rows_; }
  // After an error: a part of the rows may be in the table; only a new load id distinguishes them.
  bool needs_new_load() const { return needs_new_load_; }

 private:
  static constexpr std::size_t kBuffer = 1 << 17;
  static constexpr std::uint64_t kMostRows = 500'000;  // of one block of the server, with room
  static constexpr std::uint64_t kMostPlainBytes = std::uint64_t{96} << 20;
  Result<void> Compress();
  Result<void> Send();

  ClickHouseClient* client_;
  std::string sql_;
  std::string count_sql_;
  PushCounters& counters_;
  GzipBody body_;
  std::string row_;
  std::uint64_t rows_ = 0;  // not sent yet
  std::uint64_t done_ = 0;
  bool needs_new_load_ = false;
};

}  // namespace tlparse
