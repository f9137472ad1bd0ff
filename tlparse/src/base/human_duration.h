// Times for people.
#pragma once

#include <string>

namespace tlparse {

// "230.0 ms", "2.35 s".
std::string HumanDuration(double seconds);
inline std::string HumanMicroseconds(double us) { return HumanDuration(us / 1e6); }

}  // namespace tlparse
