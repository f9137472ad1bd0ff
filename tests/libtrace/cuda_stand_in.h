// Functions of the stand-in for CUPTI that LIBTRACE_CUPTI names (cupti_stand_in.cc).
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>

namespace libtrace::testing {

// Of any thread: it must not use Catch2's macros.
template <class Function>
Function StandIn(const char* name) {
  void* const library = dlopen(std::getenv("LIBTRACE_CUPTI"), RTLD_LAZY);
  if (library == nullptr) std::abort();
  return reinterpret_cast<Function>(dlsym(library, name));
}

inline void Launch(const char* name, uint64_t duration_ns, uint32_t stream) {
  StandIn<void (*)(const char*, uint64_t, uint32_t)>("standin_launch")(name, duration_ns, stream);
}

}  // namespace libtrace::testing
