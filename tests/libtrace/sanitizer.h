// LIBTRACE_TEST_SANITIZER: the program is built with AddressSanitizer or ThreadSanitizer (clang).
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define LIBTRACE_TEST_SANITIZER
#endif
#if __has_feature(thread_sanitizer)
#define LIBTRACE_TEST_THREAD_SANITIZER
#endif
#if __has_feature(address_sanitizer)
#define LIBTRACE_TEST_LEAKS
#include <sanitizer/lsan_interface.h>
#endif
#endif

namespace libtrace::testing {

// What this thread allocates while one exists may be lost: LeakSanitizer does not report it.
struct MayLeak {
#ifdef LIBTRACE_TEST_LEAKS
  MayLeak() { __lsan_disable(); }
  ~MayLeak() { __lsan_enable(); }
  MayLeak(const MayLeak&) = delete;
  MayLeak& operator=(const MayLeak&) = delete;
#endif
};

}  // namespace libtrace::testing
