// errno is the same after every public function of libtrace::torch and libtrace::cuda as before, and
// after an op or collective that they watch.
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>

#include "libtrace/cuda/cuda_activity.h"
#include "libtrace/torch/collectives.h"
#include "libtrace/torch/cost_model.h"
#include "libtrace/torch/native_code.h"
#include "libtrace/torch/op_observer.h"
#include "libtrace/torch/package.h"
#include "libtrace/torch/run_digest.h"
#include "libtrace/torch/torchscript.h"
#include "tests/libtrace/keeps_errno.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

using testing::MemoryTrace;
using testing::TemporaryDirectory;

// Its allreduce changes errno.
class FailingBackend final : public CollectiveBackend {
 public:
  FailingBackend() : CollectiveBackend(0, 1) {}
  const std::string getBackendName() const override { return "failing"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>&,
                                           const c10d::AllreduceOptions&) override {
    errno = EDOM;
    return {};
  }
};

constexpr const char* kReluSource = "def forward(self, x):\n    return torch.relu(x) + 1\n";

TEST_CASE("errno: survives models and their observers") {
  const MemoryTrace trace;
  torch::jit::Module module("Net");
  const std::string source = kReluSource, file = "net.py";
  KEEPS_ERRNO(DefineMethods(module, source, file));
  TorchScriptOptions options{.digest_every = 2};
  options.executions = std::make_shared<GraphExecutionOrder>();
  const std::vector<c10::IValue> inputs{at::ones({2})};
  std::optional<TorchScriptModel> model;
  {
    torch::jit::Module copy = module;
    TorchScriptOptions own = options;
    KEEPS_ERRNO(model.emplace(std::move(copy), std::move(own)));
  }
  for (int i = 0; i < 3; ++i) {
    std::vector<c10::IValue> moved = inputs;
    KEEPS_ERRNO(model->Run(std::move(moved)));
  }
  KEEPS_ERRNO(model->specialization_count());
  KEEPS_ERRNO(model.reset());
  std::optional<ModuleObserver> observer;
  {
    torch::jit::Module copy = module;
    TorchScriptOptions own = options;
    KEEPS_ERRNO(observer.emplace(std::move(copy), std::move(own)));
  }
  for (int i = 0; i < 4; ++i) {
    std::optional<ModuleObserver::Call> call;
    KEEPS_ERRNO(call.emplace(*observer, inputs));
    const c10::IValue output = module.forward(inputs);
    KEEPS_ERRNO(call->Returned(output));
    KEEPS_ERRNO(call.reset());
  }
  KEEPS_ERRNO(observer.reset());
}

TEST_CASE("errno: survives models from a cache") {
  const MemoryTrace trace;
  const TemporaryDirectory folder;
  CompileCache cache({.layer = "libtrace_torchscript", .directory = folder.string()});
  const ModelRequest request{.name = "net", .source = "1", .inputs = {at::ones({2})}};
  const auto build = [] {
    torch::jit::Module module("Net");
    DefineMethods(module, kReluSource, "net.py");
    return module;
  };
  std::optional<LoadedModels> loaded;
  KEEPS_ERRNO(loaded.emplace());
  KEEPS_ERRNO(LoadOrBuild(cache, request, build));
  for (int i = 0; i < 2; ++i) KEEPS_ERRNO(LoadOrBuild(cache, request, build, &*loaded));
  KEEPS_ERRNO(loaded->stats(); loaded->Clear());
  KEEPS_ERRNO(loaded.reset());
}

TEST_CASE("errno: survives observing ops, digests, packages, keys and the roofline") {
  const MemoryTrace trace;
  const at::Tensor one = at::ones({2});
  KEEPS_ERRNO(MeasuredRoofline(); MeasuredRoofline("cuda:0"));
  for (const bool all_threads : {false, true}) {
    OpObserverOptions options;
    options.all_threads = all_threads;
    std::optional<OpObserver> observer;
    KEEPS_ERRNO(observer.emplace(std::move(options)));
    at::relu(one);
    KEEPS_ERRNO(observer->Runtimes());
    KEEPS_ERRNO(observer->Measured());
    KEEPS_ERRNO(observer->lost_count());
    KEEPS_ERRNO(observer->Emit());
    KEEPS_ERRNO(observer.reset());
  }
  RunDigest digest("forward");
  const c10::IValue output(one);
  KEEPS_ERRNO(AddOutputs(digest, output));
  Package package;
  const std::string none = "/no/such/package.pt2";
  KEEPS_ERRNO(static_cast<void>(DescribePackage(none, package)));
  CacheKeyBuilder builder("t");
  KEEPS_ERRNO(AddNativeCode(builder));
  std::optional<CudaActivity> activity;
  KEEPS_ERRNO(activity.emplace());
  KEEPS_ERRNO(activity->Records(); activity->counts(); activity->clocks());
  KEEPS_ERRNO(activity->Emit(); activity.reset());
}

TEST_CASE("errno: survives logging collectives") {
  const MemoryTrace trace;
  for (const bool as_issued : {true, false}) {
    CollectiveLogOptions how;
    how.writes_as_issued = as_issued;
    auto log = std::make_shared<CollectiveLog>(how);
    std::string name = "data_parallel";
    c10::intrusive_ptr<CollectiveBackend> backend = c10::make_intrusive<FailingBackend>(), traced;
    auto given = log;
    KEEPS_ERRNO(traced = TraceCollectives(std::move(backend), std::move(name), std::move(given)));
    std::vector<at::Tensor> tensors{at::ones({2})};
    traced->allreduce(tensors);
    CHECK(errno == EDOM);  // the backend's own
    KEEPS_ERRNO(log->EmitSchedule());
    KEEPS_ERRNO(log->size(); log->unwritten_count());
    KEEPS_ERRNO(log->Emit());
    traced.reset();
    KEEPS_ERRNO(log.reset());
  }
}

}  // namespace
}  // namespace libtrace
