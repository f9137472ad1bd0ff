// What C++ and the C library print to standard error before they abort a process, kernels of a GPU whose
// assertion failed, and Python's faulthandler when a fatal signal comes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tlparse {

struct AbortText {
  std::int64_t line = 0;             // 1-based: the first of it
  std::optional<std::int64_t> rank;  // if its lines begin with one
  std::string
      text;  // "std::out_of_range: index 12 of 8", "free(): invalid pointer"; empty: of a signal
  std::int64_t signal =
      0;  // of "Fatal Python error: Segmentation fault" and its stacks; 0: not of one
  std::string stopped_at =
      {};  // of a signal as `fault_thread`: Fault (artifacts/common/text/python_stack.h)
  std::string fault_thread = {};
};

// The lines of one file, in order.
class AbortTexts {
 public:
  // Whether the line is one of them.
  bool Add(std::string_view line, std::int64_t number);
  // After the last line.
  void End();

  std::vector<AbortText> texts;

 private:
  bool AddToFault(std::string_view line);

  std::string fault_;      // stacks of the last of `texts`; empty: it has none, or they are read
  int lines_to_what_ = 0;  // so many later ones may say what the last text was thrown with
};

}  // namespace tlparse
