// Observes a TorchScript module that the program runs itself.
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "core/errno_scope.h"
#include "core/per_process.h"
#include "libtrace/compile.h"
#include "libtrace/torch/op_observer.h"
#include "libtrace/torch/torchscript.h"
#include "libtrace/trace.h"
#include "torch/model_digests.h"
#include "torch/model_parts.h"
#include "torch/torchscript_records.h"

namespace libtrace {

struct ModuleObserver::Impl {
  struct Seen {
    InputSignature signature;
    CompileId compile_id;
    uint64_t call_count = 1;
  };

  struct Calls {
    std::mutex mutex;
    std::vector<Seen> seen;      // newest last
    uint64_t general_count = 0;  // calls with other inputs
    std::atomic<bool> has_optimized_graph = false;
  };

  torch::jit::Module module;
  TorchScriptOptions options;
  Frame frame;
  detail::PerProcess<Calls> calls;

  torch::jit::Function& function() { return module.get_method(options.method).function(); }
};

// What lasts from the start to the end of one call.
struct ModuleObserver::Call::State {
  std::shared_ptr<ModuleObserver::Impl> impl;
  std::string file;
  std::optional<Compile> compile;  // inputs of a new kind
  std::optional<CompileId> compile_id;
  CallSite location;
  InputSignature signature;
  uint64_t number = 0;  // of the call, among those with such inputs
  std::optional<OpObserver> ops;
  int64_t start_ns = 0;
  std::optional<int64_t> duration_ns;
  int uncaught_count = std::uncaught_exceptions();

  // Whether the call has inputs of a new kind, to be compiled; `earlier` is then what was before.
  bool Count(std::vector<ModuleObserver::Impl::Seen>& earlier);
  // Without a lock: other calls do not wait for what is emitted.
  void BeginCompile(const std::vector<ModuleObserver::Impl::Seen>& earlier);
};

bool ModuleObserver::Call::State::Count(std::vector<ModuleObserver::Impl::Seen>& earlier) {
  ModuleObserver::Impl::Calls& calls = impl->calls.get();
  const std::lock_guard lock(calls.mutex);
  auto& seen = calls.seen;
  const auto known = std::find_if(seen.begin(), seen.end(),
                                  [&](const auto& s) { return s.signature == signature; });
  if (known != seen.end()) {
    compile_id = known->compile_id;
    number = known->call_count++;
    return false;
  }
  if (seen.size() >= impl->options.max_specializations) {
    number = calls.general_count++;
    return false;
  }
  earlier = seen;
  compile_id = impl->frame.NextCompile();
  seen.push_back({signature, *compile_id});
  return true;
}

void ModuleObserver::Call::State::BeginCompile(
    const std::vector<ModuleObserver::Impl::Seen>& earlier) {
  std::vector<std::pair<CompileId, const InputSignature*>> signatures;
  for (const auto& s : earlier) signatures.emplace_back(s.compile_id, &s.signature);
  const auto graph = torch::jit::toGraphFunction(impl->function()).graph();
  const std::string& name = impl->options.name;
  const CompileDescription description = DescribeCompile(name, signatures, signature, *graph, file);
  compile.emplace(*compile_id, description, location);
  EmitGraphBefore(*compile, *graph, earlier.size(), signature.size(), location);
}

ModuleObserver::ModuleObserver(torch::jit::Module module, TorchScriptOptions options) {
  const detail::ErrnoScope keeps_errno;
  impl_ = std::make_shared<Impl>();
  impl_->module = std::move(module);
  impl_->options = std::move(options);
  if (impl_->options.observe_ops && IsEnabled()) MeasureRooflines(WeightsOf(impl_->module));
}
ModuleObserver::~ModuleObserver() {
  const detail::ErrnoScope keeps_errno;
  impl_.reset();
}

namespace {

using Impl = ModuleObserver::Impl;

// The graph that libtorch made of the module, once it has one; nothing is made for it.
void EmitOptimizedGraph(Impl& impl, CompileId compile_id, CallSite location) {
  std::atomic<bool>& has_optimized_graph = impl.calls->has_optimized_graph;
  if (has_optimized_graph) return;
  auto& graph_function = torch::jit::toGraphFunction(impl.function());
  auto& executor = graph_function.get_executor();
  if (!executor.isOptimized() || has_optimized_graph.exchange(true)) return;
  const auto state = executor.getDebugState();
  if (state.execution_plans.empty()) return;
  const auto optimized = state.execution_plans.begin()->second.graph;
  const ContextScope scope(Context{compile_id, 0, ""});
  EmitOptimizedRecords(*graph_function.optimized_graph(), *optimized, nullptr, location);
}

}  // namespace

ModuleObserver::Call::Call(ModuleObserver& observer, const std::vector<c10::IValue>& inputs,
                           CallSite location) noexcept {
  if (!IsEnabled()) return;
  const detail::ErrnoScope keeps_errno;
  try {
    auto state = std::make_unique<State>();
    state->impl = observer.impl_;
    state->location = location;
    Impl& impl = *state->impl;
    state->signature = SignatureOf(inputs, 1, impl.function());
    std::vector<Impl::Seen> earlier;
    if (state->Count(earlier)) state->BeginCompile(earlier);
    if (state->compile_id && state->number == 1 && impl.options.observe_ops) {
      OpObserverOptions observe;
      observe.context = Context{*state->compile_id, 0, ""};
      state->ops.emplace(observe, location);
    }
    state->start_ns = NowNs();
    state_ = std::move(state);
  } catch (const std::exception&) {  // no memory, or no such method: the call runs unobserved
  }
}

ModuleObserver::Call::~Call() {
  if (state_ == nullptr) return;
  const detail::ErrnoScope keeps_errno;
  const auto state = std::move(state_);
  const int64_t duration_ns = state->duration_ns.value_or(NowNs() - state->start_ns);
  Impl& impl = *state->impl;
  state->ops.reset();
  if (std::uncaught_exceptions() > state->uncaught_count) return;  // the call has thrown
  try {
    if (impl.options.executions)
      impl.options.executions->Executed(state->compile_id, impl.options.name, duration_ns,
                                        state->location);
    if (state->compile_id && !state->compile)
      EmitOptimizedGraph(impl, *state->compile_id, state->location);
  } catch (const std::exception&) {  // no memory, or libtorch keeps the graph to itself
  }
}

void ModuleObserver::Call::Returned(const c10::IValue& output) noexcept {
  if (state_ == nullptr) return;
  const detail::ErrnoScope keeps_errno;
  state_->duration_ns = NowNs() - state_->start_ns;
  state_->ops.reset();
  Impl& impl = *state_->impl;
  const TorchScriptOptions& options = impl.options;
  if (options.digest_every != 0 && state_->number % options.digest_every == 0) {
    Context context;
    if (state_->compile_id) context.compile_id = *state_->compile_id;
    EmitRunDigest(options.name, state_->number, context, {}, output, state_->location);
  }
  if (!state_->compile) return;
  try {
    EmitSignature(options.name, state_->signature, output, state_->location);
  } catch (const std::exception&) {  // no memory
  }
}

}  // namespace libtrace
