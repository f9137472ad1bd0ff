// The Chromium trace of a run for Perfetto, written piece by piece from SQL.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "store/any_rows.h"
#include "store/database.h"

namespace tlparse {

// Owns a connection of its own, so that a download of any size neither waits for nor blocks the
// page.
class EventStream {
 public:
  static Result<std::unique_ptr<EventStream>> Open(const std::string& database_path,
                                                   std::int64_t run_id);

  // The next piece, about 256 KiB; empty at the end.
  Result<std::string> Next();

 private:
  EventStream(Database database) : database_(std::move(database)) {}
  void AppendEvent(std::string& json);

  Database database_;
  std::optional<AnyRows> rows_;
  bool is_first_ = true;
};

}  // namespace tlparse
