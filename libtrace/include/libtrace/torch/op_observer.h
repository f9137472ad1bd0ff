// OpObserver: the outputs of the ops that libtorch runs, and how long they take.
//
//   {
//     libtrace::OpObserver observer;        // watches the ops of this thread
//     for (int step = 0; step < 10; ++step) model.forward({batch});
//   }                                       // emits both records
//
// Emits `inductor_runtime_and_tensor_meta` (every op once: estimated runtime, shape, stride, dtype
// and device of its outputs) and `libtrace_measured_runtime` (count, total, least and most of each
// op), which join by name. Calls with the same name, tensors and graph node are one op; several ops
// of one name get `_1`, `_2`, … from the second on, as FX names nodes; kernels of AOTInductor are
// named as in their code (`cpp_fused_…` for `graph_0_cpp_fused_…`). An op without known tensors
// (neither passed nor in OpObserverOptions::fused_ops) has no estimate and is in the measured
// runtimes only. A CudaActivity that is active meanwhile attributes kernels to an op. Built on
// at::RecordFunction; when tracing is off nothing is registered.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libtrace/artifacts/measured_runtime.h"
#include "libtrace/artifacts/runtime_and_tensor_meta.h"
#include "libtrace/call_site.h"
#include "libtrace/export.h"
#include "libtrace/scope.h"
#include "libtrace/torch/cost_model.h"

namespace libtrace LIBTRACE_EXPORT {

// What one call of a fused group or kernel computes: libtorch does not pass its tensors when it runs.
struct FusedOp {
  std::vector<TensorMeta> outputs{};  // none: not known
  OpCost cost{};
};
// By name. One that stands for every call, or one for each call of a run, in order.
using FusedOps = std::map<std::string, std::vector<FusedOp>>;

struct OpObserverOptions {
  // Every thread of the process instead of the one that made the observer: the backward pass of
  // autograd on a GPU, inter-op threads. Ops are then listed in the order in which they first
  // ended.
  bool all_threads = false;
  // Ops called by other ops as well (`aten::clamp_min` within `aten::relu`).
  bool nested_ops = false;
  uint32_t max_ops = 10'000;  // different ones; calls of others are only counted
  // By the name under which the op runs, or that it has in the code; may be null. If a name was not
  // called a multiple of as often as it has elements here, its calls have no estimate.
  std::shared_ptr<const FusedOps> fused_ops{};
  // Compile that the records belong to; default: the thread's at Emit.
  std::optional<Context> context{};
};

class OpObserver {
 public:
  // Watching an op allocates nothing, so what is kept of it is bounded: the first 6 tensors of its
  // inputs and of its outputs, the first 8 dimensions of a tensor.
  explicit OpObserver(OpObserverOptions options = {}, CallSite location = CallSite::Current());
  ~OpObserver();  // Emit()
  OpObserver(const OpObserver&) = delete;
  OpObserver& operator=(const OpObserver&) = delete;

  // Stops observing, and emits the records; on any thread. A second call does nothing.
  void Emit() noexcept;
  // Stops observing without emitting.
  void Stop() noexcept;

  // The observed ops, of a stopped observer. The estimates need MeasuredRoofline().
  // Runtimes() leaves out ops without an estimate.
  std::vector<OpRuntime> Runtimes() const;
  std::vector<MeasuredOp> Measured() const;
  uint64_t lost_count() const;  // calls beyond max_ops

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

// Which graph node this thread executes: ops observed meanwhile get its name (MeasuredOp::node).
// `name` must outlive the scope. Set by libtrace's TorchScript wrapper; any interpreter can.
class NodeScope {
 public:
  explicit NodeScope(const std::string* name) noexcept;
  ~NodeScope();
  NodeScope(const NodeScope&) = delete;
  NodeScope& operator=(const NodeScope&) = delete;

 private:
  const std::string* previous_;
};

}  // namespace LIBTRACE_EXPORT
