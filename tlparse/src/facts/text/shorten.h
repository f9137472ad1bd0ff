// Texts of logs made shorter for one line of an answer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tlparse {

// Every number made 0: texts that differ in sizes or constants only have equal forms.
std::string DigitsAsZero(std::string_view text);

// A value on one line, at most `size` characters (UTF-8 kept whole), "…" at the end if cut.
std::string Shorten(std::string_view value, std::size_t size);

}  // namespace tlparse
