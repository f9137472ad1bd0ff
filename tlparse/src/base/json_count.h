// Bounds the memory that a parse of JSON takes.
#pragma once

#include <cstddef>
#include <string_view>

namespace tlparse {

// A value takes up to 24 bytes in simdjson's DOM, and the rows that are made of it several times as much. Texts with more values
// are not parsed.
inline constexpr std::size_t kMostJsonValues = 1'000'000;

// Whether `json`, which need not be valid, has more than kMostJsonValues values and names of
// members. Costs nothing for texts of up to kMostJsonValues bytes.
bool HasTooManyJsonValues(std::string_view json);

}  // namespace tlparse
