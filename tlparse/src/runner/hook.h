// The Python files that `tlparse run` puts before a program.
#pragma once

#include <string_view>

namespace tlparse {

// Text of sitecustomize.py.
std::string_view HookText();
// Text of tlparse_numbers.py, which the former loads.
std::string_view NumbersText();

}  // namespace tlparse
