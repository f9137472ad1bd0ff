// What a traceback says of one of its lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tlparse {

struct TracebackLines {
  std::string code;  // of the line; empty: the traceback has none
  std::string
      caller;  // of its function, in the user's code: "train.py:26 in main"; empty: not known
};
// Of the last frame with this line.
TracebackLines LinesOfTraceback(std::string_view traceback, std::string_view file,
                                std::int64_t line);

}  // namespace tlparse
