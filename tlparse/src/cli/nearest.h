// The name that a mistyped one may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tlparse {

// The name that becomes `mistyped` with the fewest letters added, removed, changed or swapped with their neighbour: at most
// one in three of its letters. Empty: none is that near.
std::string Nearest(std::string_view mistyped, std::span<const std::string> names);

}  // namespace tlparse
