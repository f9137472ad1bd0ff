// Hints for the usual direction of a branch, for compilers of C++17.
#pragma once

#define LIBTRACE_LIKELY(condition) __builtin_expect(static_cast<bool>(condition), 1)
#define LIBTRACE_UNLIKELY(condition) __builtin_expect(static_cast<bool>(condition), 0)
