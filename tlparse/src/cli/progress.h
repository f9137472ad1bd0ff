// A line of progress on a terminal: bytes, rate, time left. Prints nothing in a pipe.
#pragma once

#include <chrono>
#include <cstddef>

#include "import/importer.h"

namespace tlparse {

// Shows nothing in the first half second, then a few times a second; erased by the destructor. Not
// thread-safe.
class ProgressLine {
 public:
  explicit ProgressLine(std::size_t log_count);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void Show(const ImportProgress& progress);

 private:
  std::size_t log_count_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_;
  bool is_shown_ = false;
};

}  // namespace tlparse
