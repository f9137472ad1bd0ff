// Ids of this process and thread as the kernel numbers them, without a system call each time.
#pragma once

#include <cstdint>

#include "libtrace/export.h"

namespace libtrace {
namespace detail LIBTRACE_EXPORT {

uint32_t ProcessId() noexcept;
uint32_t ThreadId() noexcept;

}  // namespace LIBTRACE_EXPORT
}  // namespace libtrace
