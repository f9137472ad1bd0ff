// Four ranks train one model over Gloo; rank 2 differs from the others in three ways that a trace
// must show:
//   shape   its batches have 24 rows instead of 32, so its graph is specialised for another size
//   cache   its options differ, so that it misses the compile cache that all ranks share
//   order   it issues the two collectives of a step in the opposite order (they are of different
//   groups, so that
//           Gloo still completes; on GPUs this is how jobs hang)
//
//   libtrace_example_collectives <trace directory>
//
// Leaves one log per rank there.
#include "libtrace/torch/collectives.h"

#include <ATen/Context.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "libtrace/artifacts/provenance.h"
#include "libtrace/compile.h"
#include "libtrace/torch/torchscript.h"
#include "libtrace/trace.h"

namespace {

constexpr int kRanks = 4;
constexpr int kOddRank = 2;
constexpr int kSteps = 3;

constexpr uint32_t kSourceLine = __LINE__ + 1;
constexpr const char* kSource = R"(
def forward(self, x):
    return torch.tanh(torch.mm(x, self.weight) + self.bias)
)";

torch::jit::Module MakeModule() {
  at::manual_seed(11);  // every rank begins with the same weights
  torch::jit::Module module("Layer");
  module.register_parameter("weight", at::randn({16, 4}).mul(0.2).set_requires_grad(true), false);
  module.register_parameter("bias", at::zeros({4}).set_requires_grad(true), false);
  libtrace::DefineMethods(module, kSource, "collectives.cc", kSourceLine);
  return module;
}

libtrace::CachedModel Load(const std::string& directory, const std::string& precision) {
  libtrace::CompileCache cache(
      {.layer = "libtrace_torchscript", .directory = directory + "/cache"});
  libtrace::Frame frame;
  libtrace::Compile compile(
      frame, {.function = "load_layer", .file = "collectives.cc", .line = kSourceLine});
  const libtrace::ModelRequest request{
      .name = "layer", .source = kSource, .options = {{"matmul_precision", precision}}};
  return libtrace::LoadOrBuild(cache, request, [] { return MakeModule(); });
}

c10::intrusive_ptr<libtrace::CollectiveBackend> MakeGroup(
    const std::string& name, const std::string& directory, int rank,
    const std::shared_ptr<libtrace::CollectiveLog>& log) {
  auto file = c10::make_intrusive<c10d::FileStore>(directory + "/store", kRanks);
  auto store = c10::make_intrusive<c10d::PrefixStore>(name, file);
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices = {c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")};
  c10::intrusive_ptr<libtrace::CollectiveBackend> gloo =
      c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, kRanks, options);
  return libtrace::TraceCollectives(gloo, name, log);
}

// Sums the gradient over the data-parallel group, and shares rank 0's statistics over another.
constexpr uint32_t kReduceLine = __LINE__ + 5, kBroadcastLine = __LINE__ + 7;
void Synchronise(c10d::AllreduceOptions reduce, libtrace::CollectiveBackend& gradients,
                 libtrace::CollectiveBackend& statistics, std::vector<at::Tensor>& gradient,
                 std::vector<at::Tensor>& loss, bool is_swapped) {
  c10::intrusive_ptr<c10d::Work> first, second;
  const auto all_reduce = [&] { first = gradients.allreduce(gradient, reduce); };
  const c10d::BroadcastOptions from_rank_0;
  const auto broadcast = [&] { second = statistics.broadcast(loss, from_rank_0); };
  if (is_swapped) broadcast();
  all_reduce();
  if (!is_swapped) broadcast();
  first->wait();
  second->wait();
}

// The step is a plan of two nodes: where each is written.
void EmitPlan() {
  libtrace::Provenance plan;
  const auto add = [&](const char* op, uint32_t handle, uint32_t line, const char* code) {
    const std::string call = libtrace::Provenance::KernelCall(op, handle);
    plan.AddKernelToPost(call, op);
    plan.AddStackTrace(
        call, libtrace::Provenance::FormatFrame("collectives.cc", line, "Synchronise", code));
  };
  add("all_reduce", 1, kReduceLine, "gradients.allreduce(gradient, reduce)");
  add("broadcast", 2, kBroadcastLine, "statistics.broadcast(loss, from_rank_0)");
  plan.Emit();
}

int RunRank(const std::string& directory, int rank) {
  libtrace::Options options = libtrace::Options::FromEnvironment();
  options.directory = directory;
  options.rank = static_cast<uint32_t>(rank);
  if (!libtrace::Start(options)) return 2;
  const bool is_odd = rank == kOddRank;
  auto log = std::make_shared<libtrace::CollectiveLog>();
  auto gradients = MakeGroup("data_parallel", directory, rank, log);
  auto statistics = MakeGroup("statistics", directory, rank, log);

  const libtrace::CachedModel cached = Load(directory, is_odd ? "high" : "highest");
  auto executions = std::make_shared<libtrace::GraphExecutionOrder>();
  libtrace::TorchScriptModel model(cached.module, {.name = "layer", .executions = executions});
  at::manual_seed(100 + static_cast<uint64_t>(rank));
  libtrace::Frame step_frame;
  double last_loss = 0;
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor x = at::randn({is_odd && step > 0 ? 24 : 32, 16});
    const at::Tensor loss = model.Run({x}).toTensor().sub(0.5).pow(2).mean();
    loss.backward();
    const c10::AutoGradMode without_grad(false);
    std::vector<at::Tensor> flat, shared{loss.detach().reshape({1}).clone()};
    for (const at::Tensor& parameter : model.module().parameters())
      flat.push_back(parameter.grad().reshape({-1}));
    std::vector<at::Tensor> gradient{at::cat(flat)};
    {
      // The first step is the plan that later ones repeat: it is compiled, and says what it issues.
      std::optional<libtrace::Compile> plan;
      const libtrace::CompileDescription description{.function = "synchronise",
                                                     .file = "collectives.cc"};
      if (step == 0) plan.emplace(step_frame, description);
      Synchronise({}, *gradients, *statistics, gradient, shared, is_odd);
      if (step == 0) {
        EmitPlan();
        log->EmitSchedule();
      }
    }
    int64_t offset = 0;
    for (const at::Tensor& parameter : model.module().parameters()) {
      at::Tensor weights = parameter;
      weights.sub_(gradient[0].slice(0, offset, offset + weights.numel()).reshape(weights.sizes()),
                   0.1 / kRanks);
      weights.mutable_grad().reset();
      offset += weights.numel();
    }
    last_loss = shared[0].item<double>();
  }
  c10d::BarrierOptions barrier;
  gradients->barrier(barrier)->wait();
  std::vector<at::Tensor> check{
      model.module().attr("weight").toTensor().detach().sum().reshape({1})};
  std::printf("rank %d: model from the %s, weights sum to %.6f, loss of rank 0 %.5f\n", rank,
              cached.state == libtrace::CacheState::kHit ? "cache" : "source",
              check[0].item<double>(), last_loss);
  log->Emit();
  executions->Emit();
  libtrace::Stop();
  return 0;
}

// Runs this program again for one job; libtorch's threads do not survive a fork.
pid_t Spawn(char** argv, const std::string& job) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", argv[0], argv[1], job.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  return child;
}

bool Succeeded(pid_t child) {
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
  const std::string job = argc > 2 ? argv[2] : "";
  try {
    if (job == "warm") {  // an earlier run that filled the cache; not traced
      Load(directory, "highest");
      return 0;
    }
    if (!job.empty()) return RunRank(directory, std::stoi(job));
    std::filesystem::create_directories(directory);
    std::filesystem::remove_all(directory + "/cache");
    std::filesystem::remove(directory + "/store");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s %s: %s\n", argv[0], job.c_str(), error.what());
    return 1;
  }
  if (!Succeeded(Spawn(argv, "warm"))) return 1;
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.push_back(Spawn(argv, std::to_string(rank)));
  bool is_ok = true;
  for (const pid_t rank : ranks) is_ok = Succeeded(rank) && is_ok;
  std::filesystem::remove(directory + "/store");
  return is_ok ? 0 : 1;
}
