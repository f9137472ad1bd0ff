// What `tail -f` of several files writes, split by file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tlparse {

// A line "==> name <==" switches the file. The line feed before it is tail's, not the file's: it
// comes before each header but the first, even within a line of the file. A file whose own line
// looks like a header cannot be told from one.
class TailSplitter {
 public:
  // Bytes of the file of that name; none: its header came. Before the first header the name is
  // empty.
  using Sink = std::function<Result<void>(const std::string& name, std::string_view bytes)>;
  explicit TailSplitter(Sink sink) : sink_(std::move(sink)) {}

  // The next bytes, cut anywhere. Those that may be part of a header are held back.
  Result<void> Add(std::string_view bytes);
  // Nothing has come for a while: a line feed at the end of a line that was held back is the file's.
  Result<void> Pause();
  // The end: what was held back is the file's.
  Result<void> End();

 private:
  Result<void> Emit(std::string_view bytes);

  Sink sink_;
  std::string name_;
  std::string held_;
  bool is_at_line_start_ = true;  // of what comes next
};

}  // namespace tlparse
