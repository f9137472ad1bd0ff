#include "libtrace/torch/torchscript.h"

#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/ir/irparser.h>
#include <torch/library.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"

// Exported by libtorch, but declared in headers that Debian does not install or that take long to
// compile.
namespace torch::jit {
bool canFuseOnCPU();
void overrideCanFuseOnCPU(bool value);
namespace tensorexpr {
bool& getTEMustUseLLVMOnCPU();
}
}  // namespace torch::jit

namespace {

using libtrace::testing::Contains;
using libtrace::testing::MemoryTrace;

// Ops of somebody else's.
std::mutex gate_mutex;
std::condition_variable gate_changed;
bool is_gate_open = true, is_someone_waiting = false;

at::Tensor Twice(const at::Tensor& x) { return x.mul(2); }
at::Tensor WaitAtGate(const at::Tensor& x) {
  std::unique_lock lock(gate_mutex);
  is_someone_waiting = true;
  gate_changed.notify_all();
  gate_changed.wait(lock, [] { return is_gate_open; });
  is_someone_waiting = false;
  return x.mul(1);
}
TORCH_LIBRARY(acme, library) {
  library.def("twice(Tensor x) -> Tensor", Twice);
  library.def("wait_at_gate(Tensor x) -> Tensor", WaitAtGate);
}

constexpr const char* kSource = R"(def inner(self, x):
    return torch.relu(x + 1.0) * 0.5

def forward(self, x):
    h = torch.mm(x, x)
    return torch.tanh(self.inner(h)) + h
)";

libtrace::Options At(libtrace::ProvenanceLevel level) {
  libtrace::Options options;
  options.provenance = level;
  return options;
}

// The payload of the first record whose envelope contains `name`.
std::string PayloadOf(MemoryTrace& trace, std::string_view name) {
  const auto record = libtrace::testing::FindRecord(trace.records(), name);
  return record ? record->payload : "";
}

class Fusing {
 public:
  Fusing()
      : was_allowed_(torch::jit::canFuseOnCPU()),
        must_use_llvm_(torch::jit::tensorexpr::getTEMustUseLLVMOnCPU()) {
    torch::jit::overrideCanFuseOnCPU(true);
    torch::jit::tensorexpr::getTEMustUseLLVMOnCPU() = false;
  }
  ~Fusing() {
    torch::jit::overrideCanFuseOnCPU(was_allowed_);
    torch::jit::tensorexpr::getTEMustUseLLVMOnCPU() = must_use_llvm_;
  }

 private:
  bool was_allowed_, must_use_llvm_;
};

torch::jit::Module MakeModule() {
  torch::jit::Module module("Net");
  libtrace::DefineMethods(module, kSource, "net.py", 10);
  return module;
}

// A module whose forward is this graph: the C++ frontend has no words for ops of others.
torch::jit::Module FromGraph(const std::string& text) {
  torch::jit::Module module("Net");
  auto graph = std::make_shared<torch::jit::Graph>();
  torch::jit::parseIR(text, graph.get());
  graph->insertInput(0, "self")->setType(module.type());
  module.type()->addMethod(module._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(*module.type()->name(), "forward"), graph));
  return module;
}

at::Tensor RunTwice(libtrace::TorchScriptModel& model) {
  const at::Tensor x = at::ones({4, 4});
  model.Run({x});  // compiles
  return model.Run({x}).toTensor();
}

TEST_CASE("torchscript: a fused group's members, their lines and callers, and its code") {
  MemoryTrace trace(At(libtrace::ProvenanceLevel::kFull));
  const Fusing fusing;
  libtrace::TorchScriptModel model(MakeModule(), {.name = "net"});
  const at::Tensor y = RunTwice(model);
  CHECK(y.allclose(at::ones({4, 4}).mul(2.5).tanh().add(4)));

  const std::string nodes = PayloadOf(trace, "inductor_provenance_tracking_node_mappings");
  CHECK(Contains(nodes, "\"fused_add_relu_mul_tanh_add:2\": ["));
  CHECK(Contains(nodes, "\"aten::mm:1\": ["));
  const std::string stacks = PayloadOf(trace, "inductor_provenance_tracking_kernel_stack_traces");
  CHECK(Contains(stacks, R"(  File \"net.py\", line 15, in forward)"));  // where inner is called
  CHECK(Contains(stacks, R"(  File \"net.py\", line 11, in inner)"));
  const std::string code = PayloadOf(trace, "libtrace_torchscript_kernels");
  CHECK(Contains(code, "// fused_add_relu_mul_tanh_add:2"));
  CHECK(Contains(code, "tanh("));
}

TEST_CASE("torchscript: at the full level every observed op has its node") {
  MemoryTrace trace(At(libtrace::ProvenanceLevel::kFull));
  const Fusing fusing;
  libtrace::TorchScriptModel model(MakeModule());
  RunTwice(model);
  const std::string nodes = PayloadOf(trace, "inductor_provenance_tracking_node_mappings");
  const size_t mapped = nodes.find("\"aten::mm:1\": [\"");
  REQUIRE(mapped != std::string::npos);
  const size_t start = mapped + std::string_view("\"aten::mm:1\": [\"").size();
  const std::string node = nodes.substr(start, nodes.find('"', start) - start);
  const std::string measured = PayloadOf(trace, "libtrace_measured_runtime");
  CHECK(Contains(measured, "\"name\": \"aten::mm\", \"node\": \"" + node + "\""));
}

TEST_CASE("torchscript: by default no marks in the graph, no code, and the same result") {
  const Fusing fusing;
  at::Tensor with, without;
  {
    MemoryTrace trace(At(libtrace::ProvenanceLevel::kDefault));
    libtrace::TorchScriptModel model(MakeModule());
    with = RunTwice(model);
    CHECK_FALSE(Contains(trace.text(), "libtrace::mark"));
    CHECK_FALSE(Contains(trace.text(), "libtrace_torchscript_kernels"));
    CHECK(Contains(trace.text(), "fused_add_relu_mul_tanh_add:2"));
  }
  libtrace::TorchScriptModel model(MakeModule());
  without = RunTwice(model);
  CHECK(with.equal(without));
}

TEST_CASE("torchscript: level off gives no provenance") {
  MemoryTrace trace(At(libtrace::ProvenanceLevel::kOff));
  libtrace::TorchScriptModel model(MakeModule());
  RunTwice(model);
  CHECK(Contains(trace.text(), "libtrace_torchscript_optimized"));
  CHECK_FALSE(Contains(trace.text(), "{\"name\": \"inductor_provenance"));
}

TEST_CASE("torchscript: beyond the limit of specialisations the general graph runs") {
  MemoryTrace trace(At(libtrace::ProvenanceLevel::kDefault));
  auto executions = std::make_shared<libtrace::GraphExecutionOrder>();
  libtrace::TorchScriptModel model(MakeModule(),
                                   {.max_specializations = 1, .executions = executions});
  model.Run({at::ones({2, 2})});
  const at::Tensor y = model.Run({at::ones({3, 3})}).toTensor();
  CHECK(y.sizes() == at::IntArrayRef({3, 3}));
  CHECK(model.specialization_count() == 1);
  executions->Emit();
  CHECK(Contains(PayloadOf(trace, "graph_execution"), "\"compile_id\": null"));
}

TEST_CASE("torchscript: a fused group has an estimate and outputs, from its graph") {
  MemoryTrace trace(At(libtrace::ProvenanceLevel::kDefault));
  const Fusing fusing;
  libtrace::TorchScriptModel model(MakeModule());
  RunTwice(model);
  const std::string meta = PayloadOf(trace, "inductor_runtime_and_tensor_meta");
  INFO(meta);
  const size_t place = meta.find("\"name\": \"fused_add_relu_mul_tanh_add\"");
  REQUIRE(place != std::string::npos);
  CHECK(meta.find("\"outputs\": [{\"shape\": [4, 4], \"stride\": [4, 1], \"dtype\": \"float32\", "
                  "\"device\": \"cpu\"}]",
                  place) != std::string::npos);
}

TEST_CASE("torchscript: ops of others are in the provenance") {
  MemoryTrace trace(At(libtrace::ProvenanceLevel::kDefault));
  const torch::jit::Module module = FromGraph(R"(graph(%x : Tensor):
  %y : Tensor = acme::twice(%x)
  return (%y)
)");
  libtrace::TorchScriptModel model(module);
  RunTwice(model);
  CHECK(Contains(PayloadOf(trace, "inductor_provenance_tracking_node_mappings"),
                 "\"acme::twice:1\": ["));
}

TEST_CASE("torchscript: ops of others within branches and loops are in the provenance") {
  MemoryTrace trace(At(libtrace::ProvenanceLevel::kDefault));
  const torch::jit::Module module = FromGraph(R"(graph(%x : Tensor):
  %true : bool = prim::Constant[value=1]()
  %dim : int = aten::dim(%x)
  %two : int = prim::Constant[value=2]()
  %is_matrix : bool = aten::eq(%dim, %two)
  %y : Tensor = prim::Loop(%dim, %true, %x)
    block0(%i : int, %carried : Tensor):
      %z : Tensor = prim::If(%is_matrix)
        block0():
          %twice : Tensor = acme::twice(%carried)
          -> (%twice)
        block1():
          -> (%carried)
      -> (%true, %z)
  return (%y)
)");
  libtrace::TorchScriptModel model(module);
  CHECK(RunTwice(model).allclose(at::ones({4, 4}).mul(4)));
  CHECK(Contains(PayloadOf(trace, "inductor_provenance_tracking_node_mappings"), "\"acme::twice:"));
}

TEST_CASE("torchscript: off, the module's own method runs and nothing is specialised") {
  libtrace::Stop();
  libtrace::TorchScriptModel model(MakeModule());
  CHECK(RunTwice(model).allclose(at::ones({4, 4}).mul(2.5).tanh().add(4)));
  CHECK(model.specialization_count() == 0);
}

// `<compile id> <call>: <kinds of its parts>` of each digest.
std::vector<std::string> Digests(MemoryTrace& trace) {
  std::vector<std::string> digests;
  for (const auto& record : trace.records()) {
    if (!record.IsArtifact("libtrace_run_digest")) continue;
    const std::string& text = record.payload;
    const size_t call = text.find("\"call\": ") + 8;
    digests.push_back(
        (record.Has("\"frame_compile_id\": 0") ? "0/0 " : "none ") +
        text.substr(call, text.find(',', call) - call) + ":" +
        (Contains(text, "\"kind\": \"kernel\", \"name\": \"optimized_graph\"") ? " kernel" : "") +
        (Contains(text, "\"kind\": \"output\", \"name\": \"0\", \"text\": \"float32[4, 4]\"")
             ? " output"
             : ""));
  }
  return digests;
}

TEST_CASE("torchscript: the first run of a graph and every n-th after it are hashed on request") {
  MemoryTrace trace(At(libtrace::ProvenanceLevel::kDefault));
  libtrace::TorchScriptModel model(MakeModule(), {.max_specializations = 1, .digest_every = 2});
  for (int i = 0; i < 5; ++i) model.Run({at::ones({4, 4})});
  CHECK(Digests(trace) ==
        std::vector<std::string>{"0/0 0: output", "0/0 2: kernel output", "0/0 4: kernel output"});
  // Inputs beyond the limit of graphs: the general one, a graph of its own.
  for (int i = 0; i < 2; ++i) model.Run({at::ones({6, 6})});
  CHECK(Digests(trace).back() == "none 0:");
  // Hashing is no op of the model.
  CHECK_FALSE(Contains(PayloadOf(trace, "libtrace_measured_runtime"), "aten::contiguous"));

  MemoryTrace without(At(libtrace::ProvenanceLevel::kDefault));
  libtrace::TorchScriptModel plain(MakeModule());
  RunTwice(plain);
  CHECK(Digests(without).empty());
}

TEST_CASE("torchscript: an observer hashes what it is told that a call returned") {
  MemoryTrace trace(At(libtrace::ProvenanceLevel::kDefault));
  torch::jit::Module module = MakeModule();
  libtrace::ModuleObserver observer(module, {.digest_every = 3});
  for (int i = 0; i < 4; ++i) {
    const at::Tensor x = at::ones({4, 4});
    libtrace::ModuleObserver::Call call(observer, {x});
    call.Returned(module.forward({x}));
  }
  CHECK(Digests(trace) == std::vector<std::string>{"0/0 0: output", "0/0 3: output"});
}

TEST_CASE("torchscript: records have the place in the program that ran the model") {
  MemoryTrace trace(At(libtrace::ProvenanceLevel::kFull));
  libtrace::TorchScriptModel model(MakeModule());
  RunTwice(model);
  torch::jit::Module module = MakeModule();
  libtrace::ModuleObserver observer(module);
  for (int i = 0; i < 3; ++i) {
    libtrace::ModuleObserver::Call call(observer, {at::ones({4, 4})});
    call.Returned(module.forward({at::ones({4, 4})}));
  }
  for (const auto& record : trace.records()) {
    INFO(record.prefix << record.envelope);
    CHECK(Contains(record.prefix, Contains(record.prefix, "record_writer.cc")
                                      ? "libtrace/core/record_writer.cc:"
                                      : "torchscript_test.cc:"));
  }
}

TEST_CASE("torchscript: requests do not wait for one that compiles") {
  MemoryTrace trace(At(libtrace::ProvenanceLevel::kDefault));
  const torch::jit::Module module = FromGraph(R"(graph(%x : Tensor, %wait : bool):
  %r : Tensor = prim::If(%wait)
    block0():
      %w : Tensor = acme::wait_at_gate(%x)
      -> (%w)
    block1():
      -> (%x)
  %one : int = prim::Constant[value=1]()
  %z : Tensor = aten::add(%r, %one, %one)
  return (%z)
)");
  libtrace::TorchScriptModel model(module);
  is_gate_open = false;
  std::thread slow([&] { model.Run({at::ones({2}), true}); });
  {
    std::unique_lock lock(gate_mutex);
    gate_changed.wait(lock, [] { return is_someone_waiting; });
  }
  CHECK(model.Run({at::ones({2}), false}).toTensor().equal(at::ones({2}).mul(2)));  // same inputs
  CHECK(model.Run({at::ones({3}), false}).toTensor().equal(at::ones({3}).mul(2)));  // others
  {
    const std::lock_guard lock(gate_mutex);
    is_gate_open = true;
  }
  gate_changed.notify_all();
  slow.join();
  CHECK(model.specialization_count() == 2);
}

TEST_CASE("torchscript: an observer records calls that the program makes itself") {
  MemoryTrace trace(At(libtrace::ProvenanceLevel::kDefault));
  auto executions = std::make_shared<libtrace::GraphExecutionOrder>();
  torch::jit::Module module = MakeModule();
  libtrace::ModuleObserver observer(module, {.name = "net", .executions = executions});
  for (const int64_t size : {4, 4, 4, 6}) {
    const at::Tensor x = at::ones({size, size});
    libtrace::ModuleObserver::Call call(observer, {x});
    call.Returned(module.forward({x}));
  }
  executions->Emit();
  CHECK(Contains(trace.text(), "dynamo_start"));
  CHECK(Contains(PayloadOf(trace, "recompile_reasons"),
                 "tensor 'x' size mismatch at index 0. expected 4, actual 6"));
  CHECK(Contains(PayloadOf(trace, "libtrace_torchscript_graph"), "aten::mm"));
  CHECK(Contains(PayloadOf(trace, "libtrace_torchscript_optimized"), "aten::mm"));
  CHECK(Contains(PayloadOf(trace, "libtrace_torchscript_signature"), "\"name\": \"output\""));
  CHECK(Contains(PayloadOf(trace, "libtrace_measured_runtime"), "aten::mm"));
  const std::string order = PayloadOf(trace, "graph_execution");
  CHECK(Contains(order, "/0\""));
  CHECK(Contains(order, "/1\""));
}

TEST_CASE("torchscript: of what autograd differentiates, forward and backward are recorded") {
  MemoryTrace trace(At(libtrace::ProvenanceLevel::kDefault));
  const torch::jit::Module module = MakeModule();
  libtrace::TorchScriptModel without(module, {.name = "served"});
  without.Run({at::ones({4, 4})});
  CHECK_FALSE(Contains(trace.text(), "libtrace_torchscript_joint"));
  libtrace::TorchScriptModel model(module, {.name = "trained"});
  for (int run = 0; run < 4; ++run)
    model.Run({at::ones({4, 4}).requires_grad_(true)}).toTensor().sum().backward();
  const std::string joint = PayloadOf(trace, "libtrace_torchscript_joint");
  CHECK(Contains(trace.text(), "\"prim::DifferentiableGraph_0\""));
  CHECK(Contains(joint, "forward:\ngraph("));
  const size_t backward = joint.find("backward:\ngraph(");
  REQUIRE(backward != std::string::npos);
  // The gradient of a product is a product with what was transposed.
  CHECK(Contains(joint.substr(backward), "aten::"));
  CHECK(Contains(joint.substr(0, backward), "aten::mm"));
}

}  // namespace
