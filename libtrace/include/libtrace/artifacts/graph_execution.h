// graph_execution: the order in which compiled graphs ran.
//
// `graph_execution` has PyTorch's shape (torch/_inductor/debug.py, log_graph_execution): one record
// with the list, emitted outside any compile. With per_execution, every run also gives a
// `libtrace_graph_execution` record at once, so that a program that crashes leaves its order
// behind. Schemas: graph_execution.schema.json, libtrace_graph_execution.schema.json.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "libtrace/call_site.h"
#include "libtrace/compile_id.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

// Collects executions of all threads; thread-safe. Emits the list when it is destroyed or at
// Emit(). A forked child begins with an empty list.
class GraphExecutionOrder {
 public:
  struct Options {
    bool per_execution = false;
    uint32_t max_size = 1'000'000;  // then Emit() is called automatically
  };
  // `location` becomes the prefix of the list that the destructor emits, and of a full one.
  explicit GraphExecutionOrder(CallSite location = CallSite::Current());
  explicit GraphExecutionOrder(Options options, CallSite location = CallSite::Current());
  ~GraphExecutionOrder();
  GraphExecutionOrder(const GraphExecutionOrder&) = delete;
  GraphExecutionOrder& operator=(const GraphExecutionOrder&) = delete;

  // A graph ran, or begins to run (its duration is then not known). No compile id = a graph whose
  // compile is unknown (from a cache). `label` distinguishes graphs of one compile (`forward`,
  // `backward`, a name) in the per-execution record. Does nothing when tracing is off.
  void Executed(const std::optional<CompileId>& compile_id, std::string_view label = {},
                std::optional<int64_t> duration_ns = {},
                CallSite location = CallSite::Current()) noexcept;
  // Emits the collected executions, if any, and starts with an empty list.
  void Emit(CallSite location = CallSite::Current()) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace LIBTRACE_EXPORT
