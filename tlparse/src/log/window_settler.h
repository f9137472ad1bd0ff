// The last step of reading: what depends on the windows before.
#pragma once

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

  // Gives the payloads of a verified window their ids, and records without a possible time that of
  // their neighbour. kIo only if the index cannot be extended (disk full).
  Result<void> Settle(Window& window);

 private:
  Result<void> SetIds(Window& window);

  ReadShared& shared_;
  std::optional<PrefixTimeUs> last_time_us_;  // of the file
};

}  // namespace tlparse
