#include "base/json_count.h"

#include "base/json_string.h"

namespace tlparse {
bool HasTooManyJsonValues(std::string_view json) {
  // No value takes less than a byte.
  if (json.size() <= kMostJsonValues) return false;
  std::size_t marks = 1;
  const char* const end = json.data() + json.size();
  for (const char* at = json.data(); at != end;) {
    const char c = *at++;
    if (c == '"') {
      at = EndOfJsonString(at, end);
      if (at == nullptr) break;
    }
    if (c == ',' || c == ':' || c == '[' || c == '{') ++marks;
  }
  return marks > kMostJsonValues;
}

}  // namespace tlparse
