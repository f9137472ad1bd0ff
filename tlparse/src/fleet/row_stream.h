// Rows of a query as they arrive, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "fleet/clickhouse_client.h"
#include "fleet/row_binary.h"

namespace tlparse {

// How much data a pull may take: the announced size of the push, with a margin, and the free disk
// space.
class PullLimit {
 public:
  PullLimit(std::string directory, std::uint64_t most_bytes)
      : directory_(std::move(directory)), most_bytes_(most_bytes) {}
  // False: the limit is reached.
  bool Take(std::size_t bytes);
  const std::string& why() const { return why_; }
  std::uint64_t taken() const { return taken_; }

 private:
  std::string directory_;
  std::uint64_t most_bytes_;
  std::uint64_t taken_ = 0;
  std::uint64_t looked_at_ = 0;
  std::string why_;
};

// Runs `sql` (without FORMAT) and calls `read` for each row, with a reader at its start. `read` is
// called again for a row that was incomplete: it must check is_short() after its last value and do
// nothing if it is true. Views of the reader live until `read` returns. kRefused: the answer does
// not have such rows.
Result<std::uint64_t> StreamRows(ClickHouseClient& client, const std::string& sql, PullLimit& limit,
                                 const std::function<Result<void>(RowBinaryReader&)>& read);

}  // namespace tlparse
