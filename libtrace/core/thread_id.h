// Ids of this process and thread as the kernel numbers them, without a system call each time.
#pragma once

#include <cstdint>

namespace libtrace::detail {

uint32_t ProcessId() noexcept;
uint32_t ThreadId() noexcept;

// In a forked child, whose only thread calls it.
void ResetIdsInChild() noexcept;

}  // namespace libtrace::detail
