// Time, and the part of a record's prefix that depends on it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libtrace/export.h"

namespace libtrace {
namespace detail LIBTRACE_EXPORT {

int64_t NowNs() noexcept;  // since the epoch, UTC
inline int64_t NowUs() noexcept { return NowNs() / 1000; }
int64_t SteadyNs() noexcept;  // for durations

// Seconds to add to UTC for local time at `unix_s`. The C library computes it under a lock that a
// fork can leave locked for ever in the child. So it is called at the start of a trace, before
// every fork, and once per quarter of an hour (zones change on quarters); a child forked from a
// process with threads never calls it and keeps the offset of its parent.
int32_t UtcOffsetS(int64_t unix_s) noexcept;

// Calls it again, if this process may: the zone may have been changed.
void RefreshUtcOffset() noexcept;

// For pthread_atfork: before the fork, and in the child.
void PrepareClockForFork() noexcept;
void RestoreClockInChild() noexcept;

// Writes `V1121 08:30:01.123000 ` in local time.
inline constexpr size_t kPrefixTimeSize = 22;
void PutPrefixTime(int64_t unix_us, char* to);

}  // namespace LIBTRACE_EXPORT
}  // namespace libtrace
