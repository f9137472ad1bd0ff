// Functions of the stand-in for CUPTI that LIBTRACE_CUPTI names (cupti_stand_in.cc).
#pragma once

#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/libtrace/log_text.h"

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

// A call that starts nothing, by its number in CUPTI's headers: 1 if it left a record.
inline int NumberedCall(int32_t kind, uint32_t call) {
  return StandIn<int (*)(int32_t, uint32_t)>("standin_numbered_call")(kind, call);
}

// All records of activities of a log.
inline std::string Activities(MemoryTrace& trace) {
  return PayloadsOf(trace.records(), "libtrace_cuda_activity");
}
inline size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}
// Within 20 s.
template <class Condition>
bool Becomes(Condition condition) {
  for (int i = 0; i < 2000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

}  // namespace libtrace::testing
