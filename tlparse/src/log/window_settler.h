// The last step of reading: everything that depends on earlier windows.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "log/glog_time.h"
#include "log/read_shared.h"
#include "log/window.h"

namespace tlparse {

// Handles the windows of all files in order, one at a time, so that ids do not depend on the
// timing of threads.
class WindowSettler {
 public:
  // `shared` outlives the settler.
  explicit WindowSettler(ReadShared& shared) : shared_(shared) {}

  // Assigns the payloads of a verified window their ids, records and problems their lines in the
  // file, and records without a valid time that of their neighbour. kIo only if the index cannot be
  // extended (disk full).
  Result<void> Settle(Window& window);
  // In the latest window's file, up to the window's end.
  std::int64_t line_count() const { return line_count_; }

 private:
  void SetLines(Window& window);
  void SetTimes(Window& window);
  Result<void> SetIds(Window& window);

  ReadShared& shared_;
  // Of the file.
  std::int64_t line_feeds_ = 0;
  std::int64_t line_count_ = 0;
  std::optional<PrefixTimeUs> last_time_us_;
};

}  // namespace tlparse
