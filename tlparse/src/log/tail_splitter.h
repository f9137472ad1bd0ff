// Splits the output of `tail -f` of several files by file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tlparse {

// A line "==> name <==" switches the file. The line feed before it is tail's, not the file's: it
// comes before each header but the first, even within a line of the file. A file whose own line
// looks like a header is taken for one.
class TailSplitter {
 public:
  // Bytes of the file of that name; no bytes: only its header was read. Before the first header the
  // name is empty.
  using Sink = std::function<Result<void>(const std::string& name, std::string_view bytes)>;
  explicit TailSplitter(Sink sink) : sink_(std::move(sink)) {}

  // The next bytes; they may end anywhere. Bytes that may be part of a header are held back.
  Result<void> Add(std::string_view bytes);
  // No input for a while: a line feed that was held back belongs to the file.
  Result<void> Pause();
  // End of the input: what was held back belongs to the file.
  Result<void> End();

 private:
  Result<void> Emit(std::string_view bytes);

  Sink sink_;
  std::string name_;
  std::string held_;
  bool is_at_line_start_ = true;  // of what comes next
};

}  // namespace tlparse
