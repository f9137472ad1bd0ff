// An operator new that changes errno, as the C library allows: whatever allocates and does not
// restore it is seen.
#include <cerrno>
#include <cstdlib>
#include <new>

#include "tests/libtrace/sanitizer.h"

#ifndef LIBTRACE_TEST_THREAD_SANITIZER  // ThreadSanitizer defines these operators itself

void* operator new(size_t size_bytes) {
  void* const memory = std::malloc(size_bytes == 0 ? 1 : size_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  errno = EBADE;
  return memory;
}
void* operator new(size_t size_bytes, const std::nothrow_t&) noexcept {
  errno = EBADE;
  return std::malloc(size_bytes == 0 ? 1 : size_bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

#endif
