// Observes a TorchScript module that the program runs itself.
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <algorithm>
#include <exception>
#include <mutex>

#include "libtrace/compile.h"
#include "libtrace/torch/op_observer.h"
#include "libtrace/torch/torchscript.h"
#include "libtrace/trace.h"
#include "torch/model_parts.h"
#include "torch/torchscript_records.h"

namespace libtrace {

struct ModuleObserver::Impl {
  struct Seen {
    InputSignature signature;
    CompileId compile_id;
    uint32_t call_count = 1;
  };

  torch::jit::Module module;
  TorchScriptOptions options;
  Frame frame;
  std::mutex mutex;
  std::vector<Seen> seen;  // newest last
  bool has_optimized_graph = false;

  torch::jit::Function& function() { return module.get_method(options.method).function(); }
};

// What lasts from the start to the end of one call.
struct ModuleObserver::Call::State {
  std::shared_ptr<ModuleObserver::Impl> impl;
  std::string file;
  std::optional<Compile> compile;  // inputs of a new kind
  std::optional<CompileId> compile_id;
  bool is_second = false;
  std::optional<OpObserver> ops;
  int64_t start_ns = 0;
  int uncaught_count = std::uncaught_exceptions();
};

ModuleObserver::ModuleObserver(torch::jit::Module module, TorchScriptOptions options)
    : impl_(std::make_shared<Impl>()) {
  impl_->module = std::move(module);
  impl_->options = std::move(options);
  if (impl_->options.observe_ops && IsEnabled()) MeasuredRoofline();  // not during a request
}
ModuleObserver::~ModuleObserver() = default;

namespace {

using Impl = ModuleObserver::Impl;

// The graph that libtorch made of the module, once it has one; nothing is made for it.
void EmitOptimizedGraph(Impl& impl, CompileId compile_id) {
  auto& graph_function = torch::jit::toGraphFunction(impl.function());
  auto& executor = graph_function.get_executor();
  if (!executor.isOptimized()) return;
  {
    const std::lock_guard lock(impl.mutex);
    if (std::exchange(impl.has_optimized_graph, true)) return;
  }
  const auto state = executor.getDebugState();
  if (state.execution_plans.empty()) return;
  const auto optimized = state.execution_plans.begin()->second.graph;
  const ContextScope scope(Context{compile_id, 0, ""});
  EmitOptimizedRecords(*graph_function.optimized_graph(), *optimized);
}

}  // namespace

ModuleObserver::Call::Call(ModuleObserver& observer,
                           const std::vector<c10::IValue>& inputs) noexcept {
  if (!IsEnabled()) return;
  try {
    auto state = std::make_unique<State>();
    state->impl = observer.impl_;
    Impl& impl = *state->impl;
    InputSignature signature = SignatureOf(inputs, 1, impl.function());
    CompileDescription description;
    {
      const std::lock_guard lock(impl.mutex);
      const auto known = std::find_if(impl.seen.begin(), impl.seen.end(), [&](const Impl::Seen& s) {
        return s.signature == signature;
      });
      if (known != impl.seen.end()) {
        state->compile_id = known->compile_id;
        state->is_second = ++known->call_count == 2;
      } else if (impl.seen.size() < impl.options.max_specializations) {
        std::vector<std::pair<CompileId, const InputSignature*>> earlier;
        for (const Impl::Seen& s : impl.seen) earlier.emplace_back(s.compile_id, &s.signature);
        const auto graph = torch::jit::toGraphFunction(impl.function()).graph();
        description = DescribeCompile(impl.options.name, earlier, signature, *graph, state->file);
        state->compile.emplace(impl.frame, description);
        state->compile_id = state->compile->id();
        EmitGraphBefore(*state->compile, *graph, impl.seen.size(), signature.size());
        impl.seen.push_back({std::move(signature), *state->compile_id});
      }
    }
    if (state->is_second && impl.options.observe_ops) {
      OpObserverOptions observe;
      observe.context = Context{*state->compile_id, 0, ""};
      state->ops.emplace(observe);
    }
    state->start_ns = NowNs();
    state_ = std::move(state);
  } catch (const std::exception&) {  // no memory, or no such method: the call runs unobserved
  }
}

ModuleObserver::Call::~Call() {
  if (state_ == nullptr) return;
  const int64_t duration_ns = NowNs() - state_->start_ns;
  Impl& impl = *state_->impl;
  state_->ops.reset();
  if (std::uncaught_exceptions() > state_->uncaught_count) return;  // the call has thrown
  try {
    if (impl.options.executions)
      impl.options.executions->Executed(state_->compile_id, impl.options.name, duration_ns);
    if (state_->compile_id && !state_->compile) EmitOptimizedGraph(impl, *state_->compile_id);
  } catch (const std::exception&) {  // no memory, or libtorch keeps the graph to itself
  }
}

void ModuleObserver::Call::Returned(const c10::IValue& output) noexcept {
  if (state_ == nullptr || !state_->compile) return;
  try {
    const std::lock_guard lock(state_->impl->mutex);
    for (const Impl::Seen& s : state_->impl->seen) {
      if (s.compile_id == *state_->compile_id)
        EmitSignature(state_->impl->options.name, s.signature, output);
    }
  } catch (const std::exception&) {
  }
}

}  // namespace libtrace
