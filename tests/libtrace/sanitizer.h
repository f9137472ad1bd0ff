// LIBTRACE_TEST_SANITIZER: the program is built with AddressSanitizer or ThreadSanitizer (clang).
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define LIBTRACE_TEST_SANITIZER
#endif
#endif
