#include "libtrace/torch/op_observer.h"

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/clock.h"
#include "core/errno_scope.h"
#include "core/per_process.h"
#include "libtrace/cuda/cuda_activity.h"
#include "libtrace/torch/cost_model.h"
#include "libtrace/trace.h"
#include "torch/current_node.h"
#include "torch/op_tensors.h"

namespace libtrace {
namespace {

using detail::ForEachTensor;
using detail::Mix;
using detail::TensorHash;
using detail::Tensors;

thread_local const std::string* current_node = nullptr;

// The calls of one name of OpObserverOptions::fused_ops.
struct FusedCalls {
  const std::vector<FusedOp>* ops = nullptr;
  uint64_t count = 0;  // so far
};

struct Op {
  std::string name;
  std::optional<std::string> node;
  std::vector<TensorMeta> outputs;
  OpCost cost;
  std::string device;  // whose roofline is used; empty: unknown, so no estimate is made
  const FusedCalls* fused = nullptr;
  bool is_collective = false;
  uint64_t count = 0;
  int64_t total_ns = 0, min_ns = 0, max_ns = 0;
};

}  // namespace

struct OpObserver::Impl {
  OpObserverOptions options;
  CallSite location;
  bool is_watching = false;
  std::atomic<bool> is_over{false};  // written under the lock: nothing is counted any more
  const uint32_t process_id = detail::ProcessId();

  // In a forked child of the process that made it: another thread of that may hold the lock, and
  // its ops are not the child's.
  bool IsInherited() const { return process_id != detail::ProcessId(); }

  // Each thread takes the lock for a look-up only. Another thread than the one that is watched may
  // stop the observer.
  mutable std::mutex mutex;
  std::vector<Op> ops;
  std::unordered_map<uint64_t, size_t> index;  // by hash
  // Looked at first: a model runs the same ops again and again.
  struct Recent {
    uint64_t hash = 0;
    size_t number = 0;  // index + 1
  };
  std::array<Recent, 64> recent;
  std::map<std::string, FusedCalls, std::less<>> fused;  // by the name under which they run
  uint64_t lost_count = 0;

  FusedCalls* FindFused(std::string_view name);
  void Count(const at::RecordFunction& function, const Tensors& inputs, int64_t duration_ns);
  void Add(std::string_view name, const Tensors& inputs, const std::vector<c10::IValue>& outputs,
           const FusedCalls* fused, size_t fused_index);
  std::optional<double> EstimateNs(const Op& op) const;
  std::vector<std::string> Names() const;
};

namespace {

// One op that runs on this thread. Frames are reused: watching allocates only when it goes deeper
// than before.
struct OpCall {
  int64_t start_ns = 0;
  std::shared_ptr<OpObserver::Impl> observer;  // of all threads; null = the op is not watched
  bool is_watched = false;
  bool is_launching = false;  // what is launched on a GPU meanwhile is attributed to it
  Tensors inputs;
};

// Ops that began and have not ended, innermost last. libtorch calls OnOpEnd for each OnOpStart, on the
// same thread.
struct ThreadOps {
  std::vector<std::unique_ptr<OpCall>> frames;
  size_t depth = 0;
};

template <bool kIsGlobal>
thread_local ThreadOps thread_frames;

// The observers that the callbacks report to; callbacks are plain function pointers. At most one
// observer of each thread and one of all threads is active; a further one does nothing.
thread_local std::shared_ptr<OpObserver::Impl> thread_observer;
struct GlobalObserver {
  std::mutex mutex;
  std::shared_ptr<OpObserver::Impl> observer;
};
// Never destroyed: ops run while the process ends.
constinit std::atomic<detail::PerProcess<GlobalObserver>*> g_global{nullptr};
GlobalObserver& Global() { return detail::MadeOnce(g_global).get(); }

// Of the callbacks; 0 = not registered. A child inherits those of its parent, and keeps the one of
// all threads: another thread of its parent's may hold libtorch's lock for it.
thread_local at::CallbackHandle thread_handle = 0;
at::CallbackHandle global_handle = 0;  // with the next one guarded by GlobalObserver::mutex
uint32_t global_handle_process_id = 0;

// Returns no context: allocating one would cost more than everything else.
template <bool kIsGlobal>
std::unique_ptr<at::ObserverContext> OnOpStart(const at::RecordFunction& function) {
  const detail::ErrnoScope keeps_errno;
  ThreadOps& thread = thread_frames<kIsGlobal>;
  if (thread.depth == thread.frames.size()) thread.frames.push_back(std::make_unique<OpCall>());
  OpCall& frame = *thread.frames[thread.depth++];
  frame.is_watched = false;
  OpObserver::Impl* observer = thread_observer.get();
  if constexpr (kIsGlobal) {
    GlobalObserver& global = Global();
    const std::lock_guard lock(global.mutex);
    frame.observer = global.observer;
    observer = frame.observer.get();
  }
  if (observer == nullptr || observer->IsInherited() || observer->is_over ||
      (thread.depth > 1 && !observer->options.nested_ops))
    return nullptr;
  frame.inputs.Clear();
  for (const c10::IValue& value : function.inputs()) {
    ForEachTensor(value, [&](const at::TensorImpl& tensor) { frame.inputs.Add(tensor); });
  }
  frame.is_watched = true;
  frame.is_launching = detail::is_watching_cuda.load(std::memory_order_relaxed) &&
                       detail::PushCudaLaunch(function.name(), current_node);
  frame.start_ns = detail::SteadyNs();
  return nullptr;
}

template <bool kIsGlobal>
void OnOpEnd(const at::RecordFunction& function, at::ObserverContext*) {
  const int64_t end_ns = detail::SteadyNs();
  const detail::ErrnoScope keeps_errno;
  ThreadOps& thread = thread_frames<kIsGlobal>;
  if (thread.depth == 0) return;
  OpCall& frame = *thread.frames[--thread.depth];
  const std::shared_ptr<OpObserver::Impl> global = kIsGlobal ? std::move(frame.observer) : nullptr;
  if (!frame.is_watched) return;
  if (frame.is_launching) detail::PopCudaLaunch();
  OpObserver::Impl* const observer = kIsGlobal ? global.get() : thread_observer.get();
  if (observer == nullptr || observer->IsInherited()) return;
  try {
    observer->Count(function, frame.inputs, end_ns - frame.start_ns);
  } catch (...) {  // no memory: this call is not counted
  }
}

template <bool kIsGlobal>
at::RecordFunctionCallback MakeCallback() {
  return at::RecordFunctionCallback(OnOpStart<kIsGlobal>, OnOpEnd<kIsGlobal>)
      .needsInputs(true)
      .needsOutputs(true)
      .scopes({at::RecordScope::FUNCTION});
}

// AOTInductor runs the kernel `cpp_fused_add_0` of its code as `graph_0_cpp_fused_add_0`.
std::string NameInCode(const std::string& name) {
  if (name.rfind("graph_", 0) != 0) return name;
  const size_t end = name.find_first_not_of("0123456789", 6);
  if (end == 6 || end == std::string::npos || name[end] != '_') return name;
  const std::string kernel = name.substr(end + 1);
  const bool is_kernel = kernel.rfind("cpp_", 0) == 0 || kernel.rfind("triton_", 0) == 0;
  return is_kernel ? kernel : name;
}

}  // namespace

// Null: nothing is known of an op of that name. Only ops without tensors need it: inlined, it made
// every observed op 4 % slower (20 ns, benchmark OpObserved).
[[gnu::noinline]] FusedCalls* OpObserver::Impl::FindFused(std::string_view name) {
  if (options.fused_ops == nullptr) return nullptr;
  if (const auto known = fused.find(name); known != fused.end()) return &known->second;
  const std::string run_name(name);
  auto found = options.fused_ops->find(run_name);
  if (found == options.fused_ops->end()) found = options.fused_ops->find(NameInCode(run_name));
  if (found == options.fused_ops->end() || found->second.empty()) return nullptr;
  return &fused.emplace(run_name, FusedCalls{&found->second}).first->second;
}

void OpObserver::Impl::Count(const at::RecordFunction& function, const Tensors& inputs,
                             int64_t duration_ns) {
  TensorHash outputs;
  for (const c10::IValue& value : function.outputs()) {
    ForEachTensor(value, [&](const at::TensorImpl& tensor) { outputs.Add(tensor, nullptr); });
  }
  const std::string_view name = function.name();
  uint64_t hash = Mix(detail::HashOfName(name), reinterpret_cast<uintptr_t>(current_node));
  hash = Mix(Mix(hash, inputs.seen.hash), outputs.hash + outputs.count);

  const std::lock_guard lock(mutex);
  if (is_over) return;
  FusedCalls* const calls = inputs.seen.count + outputs.count == 0 ? FindFused(name) : nullptr;
  size_t fused_index = 0;
  if (calls != nullptr) {
    fused_index = calls->count++ % calls->ops->size();
    hash = Mix(hash, fused_index);
  }
  Recent& last = recent[hash % recent.size()];
  if (last.hash != hash || last.number == 0) {
    auto place = index.find(hash);
    if (place == index.end()) {
      if (ops.size() >= options.max_ops) {
        ++lost_count;
        return;
      }
      Add(name, inputs, function.outputs(), calls, fused_index);
      place = index.emplace(hash, ops.size() - 1).first;
    }
    last = {hash, place->second + 1};
  }
  Op& op = ops[last.number - 1];
  op.min_ns = op.count == 0 ? duration_ns : std::min(op.min_ns, duration_ns);
  ++op.count;
  op.total_ns += duration_ns;
  op.max_ns = std::max(op.max_ns, duration_ns);
}

void OpObserver::Impl::Add(std::string_view name, const Tensors& inputs,
                           const std::vector<c10::IValue>& output_values, const FusedCalls* calls,
                           size_t fused_index) {
  Tensors outputs;
  for (const c10::IValue& value : output_values) {
    ForEachTensor(value, [&](const at::TensorImpl& tensor) { outputs.Add(tensor); });
  }
  Op op;
  op.name = name;
  if (current_node != nullptr) op.node = *current_node;
  op.outputs = Describe(outputs);
  op.is_collective = name.starts_with("c10d::") || name.starts_with("_c10d_functional::");
  op.cost = CostOf(name, Sizes(inputs), Sizes(outputs), IsView(op.name, inputs, output_values));
  if (!op.outputs.empty()) {
    op.device = op.outputs[0].device.value_or("");
  } else if (inputs.seen.count > 0) {
    op.device = Describe(inputs)[0].device.value_or("");
  } else if (calls != nullptr && !(*calls->ops)[fused_index].outputs.empty()) {
    const FusedOp& fused_op = (*calls->ops)[fused_index];
    op.fused = calls;
    op.outputs = fused_op.outputs;
    op.cost = fused_op.cost;
    op.device = op.outputs[0].device.value_or("");
  }
  op.name = NameInCode(op.name);
  ops.push_back(std::move(op));
}

std::optional<double> OpObserver::Impl::EstimateNs(const Op& op) const {
  // Some calls of the code were not made: which ones is not known.
  if (op.fused != nullptr && op.fused->count % op.fused->ops->size() != 0) return {};
  if (!op.cost.is_known) return {};
  const Roofline* const roofline = op.device.empty() ? nullptr : MeasuredRoofline(op.device);
  return roofline != nullptr ? std::optional(roofline->EstimateNs(op.cost)) : std::nullopt;
}

std::vector<std::string> OpObserver::Impl::Names() const {
  std::map<std::string_view, size_t> used;
  std::vector<std::string> names;
  for (const Op& op : ops) {
    const size_t number = used[op.name]++;
    names.push_back(number == 0 ? op.name : op.name + "_" + std::to_string(number));
  }
  return names;
}

OpObserver::OpObserver(OpObserverOptions options, CallSite location) {
  const detail::ErrnoScope keeps_errno;
  impl_ = std::make_shared<Impl>();
  impl_->options = std::move(options);
  impl_->location = location;
  if (!IsEnabled()) return;
  if (impl_->options.all_threads) {
    GlobalObserver& global = Global();
    const std::lock_guard lock(global.mutex);
    if (global.observer) return;  // one at a time: the first continues
    global.observer = impl_;
    if (global_handle == 0) {
      global_handle = at::addGlobalCallback(MakeCallback<true>());
      global_handle_process_id = detail::ProcessId();
    }
  } else {
    if (thread_observer && !thread_observer->IsInherited() && !thread_observer->is_over) return;
    thread_observer = impl_;
    if (thread_handle == 0) thread_handle = at::addThreadLocalCallback(MakeCallback<false>());
  }
  impl_->is_watching = true;
}

OpObserver::~OpObserver() {
  const detail::ErrnoScope keeps_errno;
  Emit();
  impl_.reset();
}

void OpObserver::Stop() noexcept {
  if (!impl_->is_watching || impl_->IsInherited()) return;
  const detail::ErrnoScope keeps_errno;
  impl_->is_watching = false;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->is_over = true;
  }
  if (impl_->options.all_threads) {
    GlobalObserver& global = Global();
    const std::lock_guard lock(global.mutex);
    if (global_handle_process_id == detail::ProcessId())
      at::removeCallback(std::exchange(global_handle, 0));
    global.observer.reset();
  } else if (thread_observer == impl_) {  // else another thread keeps its callback for the next one
    at::removeCallback(std::exchange(thread_handle, 0));
    thread_observer.reset();
  }
}

void OpObserver::Emit() noexcept {
  if (!impl_->is_watching || impl_->IsInherited()) return;
  const detail::ErrnoScope keeps_errno;
  Stop();
  if (!IsEnabled()) return;
  try {
    std::optional<ContextScope> scope;
    if (impl_->options.context) scope.emplace(*impl_->options.context);
    EmitRuntimeAndTensorMeta(Runtimes(), impl_->location);
    EmitMeasuredRuntime(Measured(), "cpu", impl_->location);
  } catch (...) {  // no memory, or the roofline could not be measured: the records are missing
  }
}

std::vector<OpRuntime> OpObserver::Runtimes() const {
  if (impl_->IsInherited()) return {};
  const detail::ErrnoScope keeps_errno;
  const std::lock_guard lock(impl_->mutex);
  const std::vector<std::string> names = impl_->Names();
  std::vector<OpRuntime> result;
  for (size_t i = 0; i < names.size(); ++i) {
    const Op& op = impl_->ops[i];
    if (const auto estimate_ns = impl_->EstimateNs(op))
      result.push_back({names[i], op.is_collective, *estimate_ns, op.outputs});
  }
  return result;
}

std::vector<MeasuredOp> OpObserver::Measured() const {
  if (impl_->IsInherited()) return {};
  const detail::ErrnoScope keeps_errno;
  const std::lock_guard lock(impl_->mutex);
  const std::vector<std::string> names = impl_->Names();
  std::vector<MeasuredOp> result(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const Op& op = impl_->ops[i];
    MeasuredOp& measured = result[i];
    measured.name = names[i];
    measured.node = op.node;
    measured.count = op.count;
    measured.total_ns = static_cast<double>(op.total_ns);
    measured.min_ns = static_cast<double>(op.min_ns);
    measured.max_ns = static_cast<double>(op.max_ns);
    measured.estimated_runtime_ns = impl_->EstimateNs(op);
  }
  return result;
}

uint64_t OpObserver::lost_count() const {
  if (impl_->IsInherited()) return 0;
  const std::lock_guard lock(impl_->mutex);
  return impl_->lost_count;
}

const std::string* CurrentNode() noexcept { return current_node; }
void SetCurrentNode(const std::string* name) noexcept { current_node = name; }

NodeScope::NodeScope(const std::string* name) noexcept
    : previous_(std::exchange(current_node, name)) {}
NodeScope::~NodeScope() { current_node = previous_; }

}  // namespace libtrace
