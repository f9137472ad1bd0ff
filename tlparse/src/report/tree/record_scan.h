// Reads the records of one participant in log order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "report/memory_budget.h"
#include "report/participant.h"
#include "store/any_rows.h"
#include "store/database.h"

namespace tlparse {

// Strings of table `text_row`, read once each.
class TextCache {
 public:
  static Result<TextCache> Open(Database& database);
  // "" for id 0. The view lives as long as the cache.
  Result<std::string_view> Get(std::int64_t id);

 private:
  Database* database_ = nullptr;
  std::unordered_map<std::int64_t, std::string> texts_;
};

// Payloads by id. Views live until the next call. `budget`, which outlives the reader, counts the
// content that is held; null: it is not counted.
class PayloadReader {
 public:
  static Result<PayloadReader> Open(Database& database, MemoryBudget* budget = nullptr);
  Result<std::string> Hash(std::int64_t id);
  Result<std::int64_t> SizeBytes(std::int64_t id);
  Result<std::string_view> Content(std::int64_t id);
  // Frees the memory of the content.
  void Release();

 private:
  // The row of the payload; its columns are read where they are asked for.
  Result<const AnyRow*> Seek(std::int64_t id, AnyRows& rows);
  MemoryBudget* budget_ = nullptr;
  MemoryBudget::Lease lease_;
  AnyRows head_;
  AnyRows content_;
};

// Rows of record_row (as r) that belong to `participant`, in log order, for FOR_EACH_ROW. `columns`,
// `joins` and `condition` are SQL; they may not have parameters.
class RecordScan {
 public:
  static Result<RecordScan> Open(Database& database, const Participant& participant,
                                 std::string_view columns, std::string_view joins = {},
                                 std::string_view condition = {});
  RecordScan() = default;

  bool Next();
  const AnyRow& row() const { return rows_.row(); }
  std::unique_ptr<Error> TakeError() { return rows_.TakeError(); }

  struct Range {
    std::int64_t first_id;
    std::int64_t last_id;
    std::int64_t process_id;  // 0: all processes; the statement returns which
  };

 private:
  AnyRows rows_;
  std::vector<Range> ranges_;
  std::size_t next_ = 0;
  bool is_open_ = false;
};

}  // namespace tlparse
