#include "libtrace/stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "core/errno_scope.h"
#include "core/signal_guard.h"

namespace libtrace {
namespace {

thread_local StackScope* t_stack = nullptr;  // the innermost scope

struct Free {
  void operator()(char* text) const { std::free(text); }
};

StackFrame Symbolize(void* address) {
  StackFrame frame;
  Dl_info info{};
  // A return address belongs to the instruction before it.
  if (dladdr(static_cast<char*>(address) - 1, &info) == 0 || info.dli_fname == nullptr) {
    frame.function = "<unknown>";
    return frame;
  }
  frame.file = info.dli_fname;
  if (info.dli_sname != nullptr) {
    int status = 0;
    const std::unique_ptr<char, Free> name(
        abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status));
    frame.function = status == 0 && name ? name.get() : info.dli_sname;
  } else {
    // An executable without -rdynamic: addr2line -e <file> <offset> says where it is.
    std::array<char, 32> offset{};
    std::snprintf(
        offset.data(), offset.size(), "+0x%zx",
        static_cast<size_t>(static_cast<char*>(address) - 1 - static_cast<char*>(info.dli_fbase)));
    frame.function = frame.file.substr(frame.file.rfind('/') + 1) + offset.data();
  }
  return frame;
}

}  // namespace

StackFrame FrameOf(CallSite location) {
  const detail::ErrnoScope keeps_errno;
  return {location.file == nullptr ? "" : location.file, location.line,
          location.function == nullptr ? "" : location.function, std::nullopt};
}

Stack CaptureStack(int max_frames, int skip) noexcept {
  const detail::ErrnoScope keeps_errno;
  const detail::NotCancelled until_end;
  constexpr int kMaxAddresses = 256;
  std::array<void*, kMaxAddresses> addresses;
  Stack frames;
  try {
    const int wanted = std::clamp(max_frames, 0, kMaxAddresses - 1);
    skip = std::clamp(skip, 0, kMaxAddresses - 1 - wanted) + 1;  // and this function
    const int count = backtrace(addresses.data(), skip + wanted);
    for (int i = count - 1; i >= skip; --i) {
      frames.push_back(Symbolize(addresses[static_cast<size_t>(i)]));
    }
  } catch (...) {
    frames.clear();
  }
  return frames;
}

StackScope::StackScope(ArrayView<StackFrame> frames) noexcept : frames_(frames), outer_(t_stack) {
  t_stack = this;
}
StackScope::~StackScope() {
  // Usually the first one. In C the order is the caller's.
  StackScope** place = &t_stack;
  while (*place != this && *place != nullptr) place = &(*place)->outer_;
  if (*place == this) *place = outer_;
}
ArrayView<StackFrame> StackScope::Current() noexcept {
  return t_stack != nullptr ? t_stack->frames_ : ArrayView<StackFrame>();
}

}  // namespace libtrace
