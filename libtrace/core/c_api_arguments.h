// Arguments of the C interface as the library takes them.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "core/errno_scope.h"
#include "libtrace/libtrace.h"
#include "libtrace/trace.h"

namespace libtrace::c_api {

inline std::string_view Text(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

inline std::string_view Bytes(const void* bytes, size_t size_bytes) {
  return {static_cast<const char*>(bytes), bytes == nullptr ? 0 : size_bytes};
}

inline CallSite Site(const libtrace_site* site) {
  if (site == nullptr) return {};
  return {site->file, site->function, site->line};
}

// A member that a caller compiled against an older header does not have reads as the default.
template <class Struct, class Member>
Member Get(const Struct* from, Member Struct::*member, Member absent) {
  const auto offset = static_cast<size_t>(reinterpret_cast<const char*>(&(from->*member)) -
                                          reinterpret_cast<const char*>(from));
  return offset + sizeof(Member) <= from->struct_size ? from->*member : absent;
}

// The i-th struct of an array whose elements have the size that the caller knew.
template <class Struct>
const Struct* At(const Struct* array, size_t i) {
  return reinterpret_cast<const Struct*>(reinterpret_cast<const char*>(array) +
                                         i * array->struct_size);
}

// Which thread begins what: its address is the thread's, and in a forked child that of the thread
// that forked.
inline constinit thread_local char t_thread_mark = 0;

// Nothing may be thrown into C, and errno is the same afterwards.
template <class F>
auto Shielded(F&& function) noexcept -> decltype(function()) {
  const detail::ErrnoScope keeps_errno;
  try {
    return function();
  } catch (...) {
    if constexpr (!std::is_void_v<decltype(function())>) return {};
  }
}

}  // namespace libtrace::c_api
