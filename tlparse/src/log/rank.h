// Which numbers are taken as ranks.
#pragma once

#include <cstdint>

namespace tlparse {

// The largest rank of a job. A larger number in a log is damage or an attack: ranks are enumerated
// (those without a log, for example), so one number must not make billions of them.
inline constexpr std::int64_t kMaxRank = (1 << 20) - 1;

inline constexpr bool IsRank(std::int64_t number) { return number >= 0 && number <= kMaxRank; }

}  // namespace tlparse
