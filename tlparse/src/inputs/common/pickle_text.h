// Text of pickles of protocol 0; a part of the reader of pickles.
#pragma once

#include <string>
#include <string_view>

namespace tlparse {

// Latin-1 with \uXXXX and \UXXXXXXXX escapes, as UTF-8.
std::string DecodeRawUnicodeEscape(std::string_view line);

}  // namespace tlparse
