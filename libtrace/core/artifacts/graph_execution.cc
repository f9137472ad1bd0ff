#include "libtrace/artifacts/graph_execution.h"

#include <mutex>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/errno_scope.h"
#include "core/per_process.h"
#include "libtrace/trace.h"

namespace libtrace {

struct GraphExecutionOrder::Impl {
  struct Seen {
    std::mutex mutex;
    std::vector<std::optional<CompileId>> order;
    uint64_t next_ordinal = 0;  // of per-execution records: continues after Emit
  };
  Options options;
  CallSite location;
  detail::PerProcess<Seen> seen;
};

GraphExecutionOrder::GraphExecutionOrder(CallSite location)
    : GraphExecutionOrder(Options(), location) {}
GraphExecutionOrder::GraphExecutionOrder(Options options, CallSite location) {
  const detail::ErrnoScope keeps_errno;
  impl_ = std::make_unique<Impl>();
  impl_->location = location;
  impl_->options = options;
}
GraphExecutionOrder::~GraphExecutionOrder() { Emit(impl_->location); }

namespace {

struct Execution {
  uint64_t ordinal;
  const std::optional<CompileId>& compile_id;
  std::string_view label;
  std::optional<int64_t> duration_ns;
};

void EmitExecution(const Execution& execution, CallSite location) {
  EmitOptions options;
  options.expects_compile_id = false;
  EmitJsonArtifact(
      "libtrace_graph_execution", JsonStyle::kOneLine,
      [&](JsonWriter& json) {
        json.BeginObject().Field("ordinal", execution.ordinal).Key("compile_id");
        execution.compile_id ? json.String(ToString(*execution.compile_id)) : json.Null();
        json.Field("label", execution.label).Field("time_us", detail::NowUs());
        json.OptionalField("duration_ns", execution.duration_ns).EndObject();
      },
      options, location);
}

}  // namespace

void GraphExecutionOrder::Executed(const std::optional<CompileId>& compile_id,
                                   std::string_view label, std::optional<int64_t> duration_ns,
                                   CallSite location) noexcept {
  if (!IsEnabled()) return;
  const detail::ErrnoScope keeps_errno;
  try {
    uint64_t ordinal = 0;
    bool is_full = false;
    {
      Impl::Seen& seen = impl_->seen.get();
      const std::lock_guard lock(seen.mutex);
      seen.order.push_back(compile_id);
      ordinal = seen.next_ordinal++;
      is_full = seen.order.size() >= impl_->options.max_size;
    }
    if (impl_->options.per_execution) {
      EmitExecution({ordinal, compile_id, label, duration_ns}, location);
    }
    if (is_full) Emit(impl_->location);
  } catch (...) {  // no memory: the order lacks this one
  }
}

void GraphExecutionOrder::Emit(CallSite location) noexcept {
  const detail::ErrnoScope keeps_errno;
  std::vector<std::optional<CompileId>> order;
  try {
    Impl::Seen& seen = impl_->seen.get();
    const std::lock_guard lock(seen.mutex);
    order.swap(seen.order);
  } catch (...) {
    return;
  }
  if (order.empty() || !IsEnabled()) return;
  EmitJsonArtifact(
      "graph_execution", JsonStyle::kLinePerToken,
      [&](JsonWriter& json) {
        json.BeginObject().Key("graph_execution_order").BeginArray();
        for (const std::optional<CompileId>& id : order) {
          json.BeginObject().Key("compile_id");
          id ? json.String(ToString(*id)) : json.Null();
          json.EndObject();
        }
        json.EndArray().EndObject();
      },
      {}, location);
}

}  // namespace libtrace
