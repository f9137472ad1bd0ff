// Times of the tests of the job model.
#pragma once

#include <cstdint>

namespace tlparse {

inline constexpr std::int64_t kSecond = 1'000'000;  // in microseconds

}  // namespace tlparse
