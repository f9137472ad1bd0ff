// CallSite: where in the program's source a record was emitted; its prefix shows it.
#pragma once

#include <cstdint>

namespace libtrace {

// The texts must live as long as what they are given to (a call, a span); Current()'s are literals.
struct CallSite {
  // As a default argument: the caller's position. (std::source_location needs clang 16.) Where the
  // caller is the standard library (std::make_shared, emplace) give Current() yourself.
  static constexpr CallSite Current(const char* file = __builtin_FILE(),
                                    uint32_t line = __builtin_LINE(),
                                    const char* function = __builtin_FUNCTION()) {
    return {file, function, line};
  }

  const char* file = nullptr;  // null = unknown
  const char* function = nullptr;
  uint32_t line = 0;  // 1-based
};

}  // namespace libtrace
