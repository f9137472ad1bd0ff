// Dynamo's message for an exception that the traced code raises.
#pragma once

#include <string_view>

namespace tlparse {

// Whether nothing in the traced code handles the exception: it leaves the compiled function, and the
// run of it without compiled code raises it as well.
constexpr bool IsObservedException(std::string_view reason) {
  constexpr std::string_view kBegin = "Observed exception";
  return reason.starts_with(kBegin) &&
         (reason.size() == kBegin.size() || reason[kBegin.size()] == '\n');
}

}  // namespace tlparse
