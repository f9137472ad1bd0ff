// Reads a JSON text into plain values; of a file that is cut, the complete part is returned.
// Also accepts what Python's json.dumps writes beyond the standard (NaN and Infinity become null).
#pragma once

#include <string_view>

#include "inputs/common/plain_value.h"

namespace tlparse {

// Linear in time, no recursion; memory is bounded by PlainTree's limits, beyond which the reading
// ends with a problem. Anything but white space after the value is a problem. The text is taken as
// UTF-8 without a check; lone surrogates become U+FFFD.
PlainDocument ReadPlainJson(std::string_view text);

}  // namespace tlparse
