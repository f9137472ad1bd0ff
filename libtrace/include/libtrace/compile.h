// Compile: everything that belongs to one compile, around the code that compiles.
//
//   libtrace::Frame frame;                                    // once per function or model
//   {
//     libtrace::Compile compile(frame, {.function = "forward", .file = "model.cc", .line = 12});
//     …                                                       // compile; records carry 0/0
//     compile.metrics().graph_op_count = 7;
//     compile.Run([&] { Lower(model); });                     // may throw
//   }                                                         // compilation_metrics
//
// Emits a chromium span `libtrace_compile`, then `recompile_reasons` (if any), `dynamo_start`, and
// `compilation_metrics` at the end. A compile left by an exception is a failed one: Run() records
// the exception's type and message; without it the type is `exception`, because a destructor cannot
// see more.
//
// A compile that begins while tracing is off only keeps the context (a few ns), so that a trace
// switched on meanwhile has correct ids. It writes no records.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/call_site.h"
#include "libtrace/chromium_event.h"
#include "libtrace/compilation_metrics.h"
#include "libtrace/export.h"
#include "libtrace/function_ref.h"
#include "libtrace/scope.h"
#include "libtrace/stack.h"

namespace libtrace LIBTRACE_EXPORT {

// Views: what they refer to must live until the constructor of Compile returns.
struct CompileDescription {
  std::string_view function{};  // what is compiled, as its author calls it
  std::string_view file{};      // where it is defined; "" = unknown
  std::optional<uint32_t> line{};
  Stack callers{};  // who asked for it, outermost first; may be empty
  // Why earlier compiles of the frame did not fit, most recent first: `<prior id>: <failed check>`.
  std::vector<std::string> recompile_reasons{};
};

// Fills in a description; called only when tracing is on.
using DescriptionBuilder = FunctionRef<void(CompileDescription&)>;

class Compile {
 public:
  Compile(Frame& frame, const CompileDescription& description,
          CallSite location = CallSite::Current()) noexcept
      : Compile(frame.NextCompile(), description, location) {}
  Compile(const CompileId& id, const CompileDescription& description,
          CallSite location = CallSite::Current()) noexcept;
  // For descriptions that cost something to make.
  Compile(Frame& frame, DescriptionBuilder describe,
          CallSite location = CallSite::Current()) noexcept
      : Compile(frame.NextCompile(), describe, location) {}
  Compile(const CompileId& id, DescriptionBuilder describe,
          CallSite location = CallSite::Current()) noexcept;
  ~Compile();
  Compile(const Compile&) = delete;
  Compile& operator=(const Compile&) = delete;

  const CompileId& id() { return scope_.id(); }
  // Of a compile that began while tracing was off they are written nowhere.
  CompilationMetrics& metrics() noexcept { return metrics_ != nullptr ? *metrics_ : Unwritten(); }
  // An arg of the span's E event.
  template <class T>
  void Arg(std::string_view name, const T& value) {
    span_.Arg(name, value);
  }

  // Calls `compile` and returns what it returns. If it throws, records the compile as failed with
  // the exception's type and message, and passes the exception on.
  template <class F>
  auto Run(F&& compile) -> decltype(compile()) {
    try {
      return compile();
    } catch (...) {
      FailWithCurrentException();
      throw;
    }
  }

  // The analysis starts over: later records have attempt + 1.
  void Restart(std::string_view reason) noexcept;
  // The compile failed; recorded in the metrics. The first call counts.
  void Fail(std::string_view type, std::string_view reason, std::string_view user_file = {},
            std::optional<uint32_t> user_line = {}) noexcept;
  // The same with the exception that is being handled; within a catch block.
  void FailWithCurrentException() noexcept;
  // Writes the end of the compile now. The context lasts until the destructor, which then writes
  // nothing.
  void End() noexcept;

 private:
  void Begin(const CompileDescription& description) noexcept;
  CompilationMetrics& Unwritten() noexcept;

  CompileScope scope_;
  CallSite location_;
  bool is_traced_ = false;
  int uncaught_count_ = 0;  // exceptions under way when it began
  std::unique_ptr<CompilationMetrics> metrics_;
  TimedSpan span_;
};

}  // namespace LIBTRACE_EXPORT
