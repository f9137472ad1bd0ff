// The prefix of a record's header line, as torch/_logging/_internal.py writes it:
//   [rank3]:V1121 08:30:01.123000 4242 torch/_dynamo/convert_frame.py:304] {"dynamo_start": …}
// The "[rankN]:" comes from log aggregators, not from PyTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "log/glog_time.h"

namespace tlparse {

struct GlogPrefix {
  std::optional<std::int64_t> rank;  // of "[rankN]:"
  bool has_time = true;  // false: there is no such date or time of day (month 13), time_us is 0
  PrefixTimeUs time_us = 0;
  std::int64_t pid = 0;
  std::string_view path;
  std::int64_t source_line = 0;
  std::string_view json;  // from '{' to the end of the line
};

// Nothing if `line` (without its line end) is no header line. Views point into `line`.
std::optional<GlogPrefix> ParseGlogPrefix(std::string_view line);

// "[rankN]:" at the start of a line: N and the number of characters it takes.
struct RankPrefix {
  std::int64_t rank;
  std::size_t length;
};
std::optional<RankPrefix> ParseRankPrefix(std::string_view line);

}  // namespace tlparse
