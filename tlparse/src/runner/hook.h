// The Python file that `tlparse run` puts before a program.
#pragma once

#include <string_view>

namespace tlparse {

// Text of sitecustomize.py.
std::string_view HookText();

}  // namespace tlparse
