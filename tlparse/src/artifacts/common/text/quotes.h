// Finds the strings in a piece of Python source that is read from left to right.
#pragma once

#include <cstddef>
#include <string_view>

namespace tlparse {

class QuoteScanner {
 public:
  // Whether text[at] belongs to a string, its quotes included; `at` is moved from a backslash to the character that it escapes. To be called for every
  // position in order.
  bool IsInString(std::string_view text, std::size_t& at) {
    const char c = text[at];
    if (quote_ == 0) {
      if (c == '\'' || c == '"') quote_ = c;
      return quote_ != 0;
    }
    if (c == '\\') {
      ++at;
    } else if (c == quote_) {
      quote_ = 0;
    }
    return true;
  }
  // A string was not closed by the end.
  bool is_open() const { return quote_ != 0; }

 private:
  char quote_ = 0;
};

}  // namespace tlparse
