// The lines of a file being read, one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "inputs/reader.h"

namespace tlparse {

class LineStream {
 public:
  // Lines longer than `most_bytes` are given without their text, with is_too_long.
  LineStream(RuntimeContext& context, std::size_t most_bytes)
      : context_(context), most_bytes_(most_bytes) {}

  struct Line {
    std::string_view text;    // without LF and CR LF; valid until the next call of Next
    std::int64_t number = 0;  // 1-based
    std::int64_t byte_offset = 0;
    bool is_terminated = false;  // false: the file ends without a line feed here
    bool is_too_long = false;
  };
  // Nothing at the end of the file.
  Result<std::optional<Line>> Next();

 private:
  Result<bool> Fill();

  RuntimeContext& context_;
  std::size_t most_bytes_;
  std::string buffer_;
  std::size_t at_ = 0;  // first byte of the next line in buffer_
  std::int64_t number_ = 0;
  std::int64_t offset_ = 0;  // of buffer_[at_] in the file
  bool is_ended_ = false;
};

}  // namespace tlparse
