// One read transaction around the queries of an answer: they see one state of the database even
// while another run is ingested, and SQLite locks the file once instead of once per query.
#pragma once

#include <utility>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Within a transaction of the caller's it does nothing. `database` must outlive it.
class ReadTransaction {
 public:
  static Result<ReadTransaction> Begin(Database& database) {
    const bool is_outermost = sqlite3_get_autocommit(database.handle()) != 0;
    if (is_outermost) RETURN_IF_ERROR(database.Execute("BEGIN"));
    return ReadTransaction(is_outermost ? &database : nullptr);
  }
  ReadTransaction(ReadTransaction&& other) noexcept
      : database_(std::exchange(other.database_, nullptr)) {}
  ReadTransaction& operator=(ReadTransaction&&) = delete;
  ~ReadTransaction() {
    // Nothing was written: ending it cannot lose anything.
    if (database_ != nullptr) static_cast<void>(database_->Execute("COMMIT"));
  }

 private:
  explicit ReadTransaction(Database* database) : database_(database) {}
  Database* database_;
};

}  // namespace tlparse
