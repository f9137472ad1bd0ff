// What watching libtorch costs, each beside its baseline in the same run. bench_libtrace.py prints
// the table.
#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include <memory>
#include <string>
#include <vector>

#include "libtrace/sink.h"
#include "libtrace/torch/op_observer.h"
#include "libtrace/torch/run_digest.h"
#include "libtrace/torch/torchscript.h"
#include "libtrace/trace.h"

namespace {

// Tracing into memory for the length of a benchmark.
class Trace {
 public:
  Trace() {
    libtrace::Options options;
    options.sink = std::make_shared<libtrace::MemorySink>();
    static_cast<void>(libtrace::Start(options));
  }
  ~Trace() { libtrace::Stop(); }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
};

void RunOps(benchmark::State& state) {
  const c10::InferenceMode guard;
  const at::Tensor x = at::ones({4});
  at::Tensor y = at::ones({4});
  for (auto _ : state) at::add_out(y, x, x);
}

void Op(benchmark::State& state) {
  libtrace::Stop();
  RunOps(state);
}
BENCHMARK(Op);

// Tracing is off: the observer registers nothing.
void OpObservedOff(benchmark::State& state) {
  libtrace::Stop();
  const libtrace::OpObserver observer;
  RunOps(state);
}
BENCHMARK(OpObservedOff);

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction&) { return nullptr; }
void OnEnd(const at::RecordFunction&, at::ObserverContext*) {}

void OpWithEmptyCallback(benchmark::State& state) {
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(OnStart, OnEnd));
  RunOps(state);
  at::removeCallback(handle);
}
BENCHMARK(OpWithEmptyCallback);

// Empty too, but libtorch has to keep the op's inputs and outputs for it.
void OpWithEmptyCallbackForTensors(benchmark::State& state) {
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(OnStart, OnEnd).needsInputs(true).needsOutputs(true));
  RunOps(state);
  at::removeCallback(handle);
}
BENCHMARK(OpWithEmptyCallbackForTensors);

void OpObserved(benchmark::State& state) {
  const Trace trace;
  libtrace::OpObserver observer;
  RunOps(state);
  observer.Stop();
}
BENCHMARK(OpObserved);

constexpr int kOps = 100;

torch::jit::Module SmallOps() {
  std::string source = "def forward(self, x):\n";
  for (int i = 0; i < kOps / 2; ++i)
    source += "    x = torch.add(x, 1.0)\n    x = torch.mul(x, 0.5)\n";
  torch::jit::Module module("SmallOps");
  libtrace::DefineMethods(module, source + "    return x\n", "small_ops.py");
  return module;
}

// libtorch alone, optimised before it is measured.
void Model(benchmark::State& state) {
  libtrace::Stop();
  torch::jit::Module module = SmallOps();
  const c10::InferenceMode guard;
  const at::Tensor x = at::ones({4});
  for (int i = 0; i < 3; ++i) module.forward({x});
  for (auto _ : state) benchmark::DoNotOptimize(module.forward({x}));
}
BENCHMARK(Model);

void RunModel(benchmark::State& state) {
  libtrace::TorchScriptModel model(
      SmallOps(), {.executions = std::make_shared<libtrace::GraphExecutionOrder>()});
  const c10::InferenceMode guard;
  const at::Tensor x = at::ones({4});
  for (int i = 0; i < 3; ++i) model.Run({x});  // compiled; ops observed once
  for (auto _ : state) benchmark::DoNotOptimize(model.Run({x}));
}

void ModelTracedOff(benchmark::State& state) {
  libtrace::Stop();
  RunModel(state);
}
BENCHMARK(ModelTracedOff);

void ModelTraced(benchmark::State& state) {  // provenance at the default level
  const Trace trace;
  RunModel(state);
}
BENCHMARK(ModelTraced);

// What the other calls of libtrace::torch cost when tracing is off.
template <class Call>
void RunOff(benchmark::State& state, Call call) {
  libtrace::Stop();
  const at::Tensor x = at::ones({4});
  libtrace::ModuleObserver observer(SmallOps());
  libtrace::RunDigest digest("forward");
  const std::vector<c10::IValue> inputs{x};
  const c10::IValue output(x);
  for (auto _ : state) call(observer, inputs, digest, output);
}
using Observer = libtrace::ModuleObserver;
using Inputs = std::vector<c10::IValue>;
using Digest = libtrace::RunDigest;
BENCHMARK_CAPTURE(RunOff, ModuleObserver::Call,
                  [](Observer& observer, const Inputs& inputs, Digest&, const c10::IValue&) {
                    const Observer::Call call(observer, inputs);
                  });
BENCHMARK_CAPTURE(RunOff, OpObserver, [](Observer&, const Inputs&, Digest&, const c10::IValue&) {
  const libtrace::OpObserver ops;
});
BENCHMARK_CAPTURE(RunOff, NodeScope, [](Observer&, const Inputs&, Digest&, const c10::IValue&) {
  const libtrace::NodeScope node(nullptr);
});
BENCHMARK_CAPTURE(RunOff, AddOutputs,
                  [](Observer&, const Inputs&, Digest& digest, const c10::IValue& output) {
                    libtrace::AddOutputs(digest, output);
                  });

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
