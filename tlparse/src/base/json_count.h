// How much memory a parse of JSON will take, before it is parsed.
#pragma once

#include <cstddef>
#include <string_view>

namespace tlparse {

// A parsed value takes up to 24 bytes in simdjson's DOM, and a row or its likes many more: payloads
// of more values are not parsed.
inline constexpr std::size_t kMostJsonValues = 1'000'000;

// Whether `json`, which need not be valid, has more than kMostJsonValues values and names of
// members. Free for texts of up to so many bytes.
bool HasTooManyJsonValues(std::string_view json);

}  // namespace tlparse
