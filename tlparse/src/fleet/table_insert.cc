#include "fleet/table_insert.h"

#include <fmt/format.h>

#include <cstdlib>

#include "fleet/sql_quote.h"

namespace tlparse {

TableInsert::TableInsert(ClickHouseClient* client, const std::string& table,
                         const std::vector<std::string>& columns, std::string count_sql,
                         PushCounters& counters)
    : client_(client), count_sql_(std::move(count_sql)), counters_(counters) {
  sql_ = "INSERT INTO " + QuoteName(table) + " (";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) sql_ += ", ";
    sql_ += QuoteName(columns[i]);
  }
  sql_ += ") FORMAT RowBinary";
}

Result<void> TableInsert::Compress() {
  body_.Append(row_);
  row_.clear();
  if (rows_ < kMostRows && body_.plain_bytes() < kMostPlainBytes) return {};
  return Send();
}

Result<void> TableInsert::Finish() {
  body_.Append(row_);
  row_.clear();
  return rows_ == 0 ? Result<void>() : Send();
}

Result<void> TableInsert::Send() {
  const std::uint64_t plain_bytes = body_.plain_bytes();
  const std::string gzip = body_.Take();
  counters_.rows += rows_;
  counters_.plain_bytes += plain_bytes;
  counters_.sent_bytes += gzip.size();
  ++counters_.requests;
  const auto began = std::chrono::steady_clock::now();
  for (int attempt = 1; client_ != nullptr; ++attempt) {
    const ServerResult<void> sent = client_->TryInsert(sql_, gzip, began);
    if (sent) break;
    if (RetryOf(sent.error().code, sent.error().status) == Retry::kNever ||
        !client_->WaitToRetry(attempt, began))
      return tl::unexpected<Error>(client_->ToError(sent.error()));
    ++counters_.retries;
    if (count_sql_.empty()) continue;
    // Whether the request was done is not known: the answer may be what got lost.
    ASSIGN_OR_RETURN(const std::string answer, client_->Query(count_sql_));
    const std::uint64_t there = std::strtoull(answer.c_str(), nullptr, 10);
    if (there == done_ + rows_) break;
    if (there == done_) continue;
    needs_new_load_ = true;
    return Fail(ErrorCode::kRefused,
                fmt::format("{}: {} of {} rows arrived", sql_, there - done_, rows_));
  }
  done_ += rows_;
  rows_ = 0;
  return {};
}

}  // namespace tlparse
