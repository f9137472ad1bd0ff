// Stack frames of records: from C++ (`backtrace`), from one call site, or the caller's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libtrace/array_view.h"
#include "libtrace/call_site.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

// One frame as in PyTorch's torch/_logging/structured.py (from_traceback). Owns its text.
struct StackFrame {
  std::string file{};              // interned in the log; "" is written as "<unknown>"
  std::optional<uint32_t> line{};  // 1-based; empty = unknown, as for frames of stripped libraries
  std::string function{};
  std::optional<std::string> source_text{};  // text of that line
};

// Frames are listed outermost call first, as everywhere in the format.
using Stack = std::vector<StackFrame>;

StackFrame FrameOf(CallSite location = CallSite::Current());

// The C++ stack of this thread, without the `skip` innermost frames and this function, at most
// `max_frames` innermost ones. Function = demangled symbol or `<object>+0x<offset>`, file = path of
// the executable or shared library, no line. Costs some 10 us the first time and about 1 us per
// frame; nothing is cached. Never throws; empty if the stack cannot be walked.
Stack CaptureStack(int max_frames = 32, int skip = 0) noexcept;

// Gives the records that this thread emits outside every compile this stack instead of their call
// site (a host that interprets another language knows better where it is). `frames` must outlive
// the scope; scopes nest and end in reverse order on the thread that began them. One that ends
// before its inner ones leaves these be.
class StackScope {
 public:
  explicit StackScope(ArrayView<StackFrame> frames) noexcept;
  ~StackScope();
  StackScope(const StackScope&) = delete;
  StackScope& operator=(const StackScope&) = delete;

  static ArrayView<StackFrame> Current() noexcept;

 private:
  ArrayView<StackFrame> frames_;
  StackScope* outer_;
};

}  // namespace LIBTRACE_EXPORT
