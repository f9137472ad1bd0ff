// The last step of reading: what depends on the windows before.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "log/glog_time.h"
#include "log/read_shared.h"
#include "log/window.h"

namespace tlparse {

// Takes the windows of all files in order, one at a time, so that ids do not depend on which thread
// was faster.
class WindowSettler {
 public:
  // `shared` outlives the settler.
  explicit WindowSettler(ReadShared& shared) : shared_(shared) {}

  // Gives the payloads of a verified window their ids, records and findings their lines in the
  // file, and records without a possible time that of their neighbour. kIo only if the index cannot
  // be extended (disk full).
  Result<void> Settle(Window& window);
  // Of the latest window's file, up to the window's end.
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
