// Chromium events: timed spans and instants, as PyTorch's torch/_dynamo/utils.py
// (ChromiumEventLogger).
//
// Times are microseconds since the epoch; args.compile_id is always there ("None" outside a
// compile). tid and pid are the kernel's ids of thread and process (PyTorch writes 0): spans of two
// threads overlap, so readers pair B and E by thread. Timed events carry no stack, instants do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "libtrace/branch.h"
#include "libtrace/export.h"
#include "libtrace/trace.h"

namespace libtrace LIBTRACE_EXPORT {

using ArgsBuilder = FunctionRef<void(JsonWriter&)>;  // writes members into an open object

// One `i` event.
void EmitInstant(std::string_view name, ArgsBuilder args = {},
                 CallSite location = CallSite::Current()) noexcept;

// One `B` event now and one `E` event at the end of the scope, which carries everything added
// meanwhile. When tracing is off it costs a branch; if tracing goes off in between, the E is not
// written.
class TimedSpan {
 public:
  // `fn_name` is what PyTorch adds to phases (args.fn_name of both events); may be empty.
  explicit TimedSpan(std::string_view name, std::string_view fn_name = {},
                     CallSite location = CallSite::Current()) noexcept {
    if (LIBTRACE_UNLIKELY(IsEnabled())) active_ = Begin(name, fn_name, CallSite(location));
  }
  TimedSpan() noexcept = default;  // never written
  TimedSpan(TimedSpan&& other) noexcept : active_(std::exchange(other.active_, nullptr)) {}
  TimedSpan& operator=(TimedSpan&& other) noexcept {
    End();
    active_ = std::exchange(other.active_, nullptr);
    return *this;
  }
  ~TimedSpan() { End(); }

  // Adds an arg to the E event.
  template <class T>
  void Arg(std::string_view name, const T& value) noexcept {
    if (LIBTRACE_UNLIKELY(active_ != nullptr)) Append(name, value, active_->args);
  }
  // Writes the E event now; the destructor then does nothing.
  void End() noexcept {
    if (LIBTRACE_UNLIKELY(active_ != nullptr)) Finish(std::exchange(active_, nullptr));
  }

 private:
  struct Active {
    std::string name{};
    std::string fn_name{};
    std::string args{};  // `, "name": value` pieces
    CallSite location{};
  };

  // Static: a span that is off need not be in memory.
  static Active* Begin(std::string_view name, std::string_view fn_name,
                       const CallSite& location) noexcept;
  static void Finish(Active* active) noexcept;
  static void AppendArg(std::string_view name, ArgsBuilder write, std::string& args) noexcept;
  // Not inlined: a span that is off would save registers for it.
  template <class T>
  [[gnu::noinline]] static void Append(std::string_view name, const T& value,
                                       std::string& args) noexcept {
    AppendArg(
        name, [&](JsonWriter& json) { json.Value(value); }, args);
  }

  Active* active_ = nullptr;  // owned; null = tracing was off
};

}  // namespace LIBTRACE_EXPORT
