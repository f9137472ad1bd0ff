// What C++ and the C library print to standard error before they abort a process, and kernels of a GPU whose
// assertion failed.
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
  std::string text;  // "std::out_of_range: index 12 of 8", "free(): invalid pointer"
};

// The lines of one file, in order.
class AbortTexts {
 public:
  // Whether the line is one of them.
  bool Add(std::string_view line, std::int64_t number);

  std::vector<AbortText> texts;

 private:
  int lines_to_what_ = 0;  // so many later ones may say what the last text was thrown with
};

}  // namespace tlparse
