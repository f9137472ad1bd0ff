// CallSite: where in the program's source a record was emitted; its prefix shows it.
#pragma once

#include <cstdint>
#include <source_location>

namespace libtrace {

// Made by itself from the caller's position wherever it is a default argument. Other languages give their own
// file and line; the texts must then live as long as what they are given to (a call, a span).
struct CallSite {
  CallSite(const std::source_location& location)  // implicit: it is a default argument
      : file(location.file_name()), function(location.function_name()), line(location.line()) {}
  CallSite(const char* file_in, uint32_t line_in, const char* function_in)
      : file(file_in), function(function_in), line(line_in) {}

  const char* file;  // may be null, then "<unknown>"
  const char* function;
  uint32_t line;  // 1-based
};

}  // namespace libtrace
