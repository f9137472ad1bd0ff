// Numbers of bytes for people.
#pragma once

#include <cstdint>
#include <string>

namespace tlparse {

// "3.4 MB".
std::string HumanBytes(std::int64_t bytes);

}  // namespace tlparse
