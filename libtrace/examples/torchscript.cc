// A TorchScript model, from its source to being served, in two processes that share a compile
// cache.
//   first    the model is not in the cache: parsed, trained for a few steps, frozen and kept there.
//   Training compiles
//            it for 64 rows, compiles it again for the 128 of the last steps, and rejects a batch
//            with 15 columns. Serving fuses its small ops into kernels.
//   second   is served from the cache: nothing is trained, and it answers as the first did.
//
//   libtrace_example_torchscript <trace directory>
//
// Leaves one log per process there, and the cache in <trace directory>/cache.
#include "libtrace/torch/torchscript.h"

#include <ATen/Context.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "libtrace/compile.h"
#include "libtrace/trace.h"

// Exported by libtorch, but declared in headers that Debian does not install or that take long to
// compile.
namespace torch::jit {
void overrideCanFuseOnCPU(bool value);
namespace tensorexpr {
bool& getTEMustUseLLVMOnCPU();
}
}  // namespace torch::jit

namespace {

constexpr int64_t kColumns = 16;
constexpr int64_t kHidden = 32;

constexpr uint32_t kSourceLine = __LINE__ + 1;
constexpr const char* kSource = R"(
def hidden(self, x):
    h = torch.mm(x, self.weight1) + self.bias1
    return torch.relu(h)

def forward(self, x):
    h = self.hidden(x)
    return torch.sigmoid(torch.mm(h, self.weight2)) * 2.0 - 1.0
)";

torch::jit::Module MakeModule() {
  at::manual_seed(7);
  torch::jit::Module module("Regressor");
  module.register_parameter("weight1",
                            at::randn({kColumns, kHidden}).mul(0.3).set_requires_grad(true), false);
  module.register_parameter("bias1", at::zeros({kHidden}).set_requires_grad(true), false);
  module.register_parameter("weight2", at::randn({kHidden, 1}).mul(0.3).set_requires_grad(true),
                            false);
  libtrace::DefineMethods(module, kSource, "torchscript.cc", kSourceLine);
  return module;
}

// What the model is to learn: whether the row's first column is positive.
double Step(libtrace::TorchScriptModel& model, int64_t row_count) {
  const at::Tensor x = at::randn({row_count, kColumns});
  const at::Tensor target = x.slice(1, 0, 1).sign();
  const at::Tensor loss = model.Run({x}).toTensor().sub(target).pow(2).mean();
  loss.backward();
  const c10::AutoGradMode without_grad(false);
  for (const at::Tensor& parameter : model.module().parameters()) {
    at::Tensor weights = parameter;
    weights.sub_(weights.grad(), 2.0);
    weights.mutable_grad().reset();
  }
  return loss.item<double>();
}

torch::jit::Module Train() {
  auto executions = std::make_shared<libtrace::GraphExecutionOrder>();
  libtrace::TorchScriptModel model(MakeModule(), {.name = "train", .executions = executions});
  const double first = Step(model, 64);
  for (int step = 1; step < 6; ++step) Step(model, 64);
  double last = 0;
  for (int step = 0; step < 3; ++step) last = Step(model, 128);
  bool is_rejected = false;
  try {
    model.Run({at::randn({64, kColumns - 1})});
  } catch (const std::exception&) {  // libtorch's interpreter throws different ones
    is_rejected = true;
  }
  if (!is_rejected) throw std::logic_error("15 columns were accepted");
  std::printf("15 columns: rejected, as they should be\n");
  std::printf("trained: loss %.4f -> %.4f, %zu specialisations\n", first, last,
              model.specialization_count());
  executions->Emit();
  model.module().eval();
  return torch::jit::freeze(model.module());
}

int RunProcess(const std::string& directory, const std::string& number) {
  libtrace::Options options = libtrace::Options::FromEnvironment();
  options.directory = directory;
  options.provenance = libtrace::ProvenanceLevel::kFull;  // with the kernels' code
  if (!libtrace::Start(options)) return 2;
  libtrace::CompileCache cache(
      {.layer = "libtrace_torchscript", .directory = directory + "/cache"});
  const at::Tensor x = at::linspace(-1, 1, 4 * kColumns).reshape({4, kColumns});
  libtrace::CachedModel cached;
  {
    libtrace::Frame frame;
    libtrace::Compile compile(
        frame, {.function = "load_regressor", .file = "torchscript.cc", .line = kSourceLine});
    cached = libtrace::LoadOrBuild(
        cache,
        {.name = "regressor", .source = kSource, .inputs = {x}, .options = {{"frozen", "true"}}},
        [] { return Train(); });
  }
  // Where libtorch has no LLVM, kernels are interpreted
  torch::jit::tensorexpr::getTEMustUseLLVMOnCPU() = false;
  torch::jit::overrideCanFuseOnCPU(true);
  auto executions = std::make_shared<libtrace::GraphExecutionOrder>();
  libtrace::TorchScriptModel model(cached.module, {.name = "serve", .executions = executions});
  at::Tensor y;
  for (int request = 0; request < 3; ++request) y = model.Run({x}).toTensor();
  std::printf("process %s: model from the %s, y[0] = %.6f\n", number.c_str(),
              cached.state == libtrace::CacheState::kHit ? "cache" : "source", y[0].item<double>());
  executions->Emit();
  libtrace::Stop();
  return 0;
}

// Runs this program again; libtorch's threads do not survive a fork.
bool RunAgain(char** argv, const char* number) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", argv[0], argv[1], number, static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s <trace directory> — where to write the structured traces\n",
                 argv[0]);
    return 2;
  }
  const std::string directory = argv[1];
  try {
    if (argc > 2) return RunProcess(directory, argv[2]);
    std::filesystem::create_directories(directory);
    std::filesystem::remove_all(directory + "/cache");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
  return RunAgain(argv, "1") && RunAgain(argv, "2") ? 0 : 1;
}
