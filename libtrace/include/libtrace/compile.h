// Compile: everything that belongs to one compile, around the code that compiles.
//
//   libtrace::Frame frame;                                    // once per function or model
//   {
//     libtrace::Compile compile(frame, {.function = "forward", .file = "model.cc", .line = 12});
//     …                                                       // compile; records carry 0/0
//     compile.metrics().graph_op_count = 7;
//   }                                                         // compilation_metrics
//
// Emits a chromium span `libtrace_compile`, then `recompile_reasons` (if any), `dynamo_start`, and
// `compilation_metrics` at the end. When tracing is off it only keeps the context, so that a trace
// switched on meanwhile has correct ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/call_site.h"
#include "libtrace/chromium_event.h"
#include "libtrace/compilation_metrics.h"
#include "libtrace/scope.h"
#include "libtrace/stack.h"

namespace libtrace {

struct CompileDescription {
  std::string function{};  // what is compiled, as its author calls it
  std::string file{};      // where it is defined; "" = unknown
  std::optional<uint32_t> line{};
  Stack callers{};  // who asked for it, outermost first; may be empty
  // Why earlier compiles of the frame did not fit, most recent first: `<prior id>: <failed check>`.
  std::vector<std::string> recompile_reasons{};
};

class Compile {
 public:
  Compile(Frame& frame, CompileDescription description,
          CallSite location = CallSite::Current()) noexcept;
  Compile(const CompileId& id, CompileDescription description,
          CallSite location = CallSite::Current()) noexcept;
  ~Compile();
  Compile(const Compile&) = delete;
  Compile& operator=(const Compile&) = delete;

  const CompileId& id() { return scope_.id(); }
  CompilationMetrics& metrics() { return metrics_; }
  // An arg of the span's E event.
  template <class T>
  void Arg(std::string_view name, const T& value) {
    span_.Arg(name, value);
  }

  // The analysis starts over: later records have attempt + 1.
  void Restart(std::string_view reason) noexcept;
  // The compile failed; recorded in the metrics. The first call counts.
  void Fail(std::string_view type, std::string_view reason, std::string_view user_file = {},
            std::optional<uint32_t> user_line = {}) noexcept;

 private:
  void Begin(const CompileDescription& description);

  CompileScope scope_;
  CallSite location_;
  int64_t start_us_;
  CompilationMetrics metrics_;
  TimedSpan span_;
};

}  // namespace libtrace
