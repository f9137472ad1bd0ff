#include "base/json_count.h"

#include <bit>

#include "base/plain_bytes.h"

namespace tlparse {
namespace {

// `at` stands behind the opening quote; returns the place behind the closing one, or the end.
const char* BehindString(const char* at, const char* end) {
  while (at != end) {
    if (end - at >= static_cast<std::ptrdiff_t>(kBlockBytes)) {
      const unsigned special = SpecialBytes<0, '"', '\\'>(at);
      at += special == 0 ? static_cast<int>(kBlockBytes) : std::countr_zero(special);
      if (special == 0) continue;
    }
    const char c = *at++;
    if (c == '"') return at;
    if (c == '\\' && at != end) ++at;
  }
  return end;
}

}  // namespace

bool HasTooManyJsonValues(std::string_view json) {
  // No value takes less than a byte.
  if (json.size() <= kMostJsonValues) return false;
  std::size_t marks = 1;
  const char* const end = json.data() + json.size();
  for (const char* at = json.data(); at != end;) {
    const char c = *at++;
    if (c == '"') at = BehindString(at, end);
    if (c == ',' || c == ':' || c == '[' || c == '{') ++marks;
  }
  return marks > kMostJsonValues;
}

}  // namespace tlparse
