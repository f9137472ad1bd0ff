#include "libtrace/torch/torchscript.h"

#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>

#include <string>

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

using libtrace::testing::MemoryTrace;

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

bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
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

}  // namespace
