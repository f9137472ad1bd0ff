// What the member "only" of an answer is.
#pragma once

#include <string_view>

namespace tlparse {

inline constexpr std::string_view kOnly =
    "with --rank or --process: what the answer is of, what that is compared with, what was left "
    "out";

}  // namespace tlparse
