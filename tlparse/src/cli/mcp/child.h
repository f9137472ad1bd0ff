// Runs an answer in a child process: what it takes can be stopped, and what goes wrong in it ends it
// alone.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"

namespace tlparse {

struct ChildAnswer {
  int code = 0;         // exit code; 128 + signal of one that was killed
  std::string output;   // standard output
  std::string message;  // standard error
};

// While the child runs, `on_input()` is called when `input` (-1: none) has bytes or ends; false: it
// is not watched any more. `is_cancelled()` is asked after each such call. kUsage: stopped, because
// it was cancelled, took longer than `limit`, or printed more than 64 MB. The calling process must
// have no other thread.
struct ChildLimits {
  std::chrono::milliseconds limit;
  int input = -1;
  std::function<bool()> on_input;
  std::function<bool()> is_cancelled;
};
Result<ChildAnswer> RunInChild(const std::function<int()>& run, const ChildLimits& limits);

}  // namespace tlparse
