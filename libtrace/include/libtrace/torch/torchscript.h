// TorchScript models under compile scopes: what was specialised for which inputs and why, the
// graphs before and after libtorch's optimising passes, where each kernel comes from, in which
// order graphs ran.
//
//   torch::jit::Module module("Net");
//   libtrace::DefineMethods(module, source, "net.py", 1);
//   libtrace::TorchScriptModel model(module, {.name = "net"});
//   at::Tensor y = model.Run({x}).toTensor();          // 0/0: new inputs, compiled and run
//   model.Run({wider_x});   // 0/1: recompile_reasons names the size that changed
//
// A compile emits, in addition to libtrace::Compile: graph dumps `libtrace_torchscript_graph`
// (inlined, before the passes) and `libtrace_torchscript_optimized`, for each part of it that
// autograd differentiates `libtrace_torchscript_joint` (its forward and backward), the artifact
// `libtrace_torchscript_signature` (type, shape, stride, device of inputs and outputs), both
// provenance records, and for the first run of the optimised graph what OpObserver emits. With
// ProvenanceLevel::kFull also the code that was generated for fused groups (graph dump
// `libtrace_torchscript_kernels`), and the node of every observed op: each node of the optimised
// graph then costs about 60 ns more. When tracing is off the module's own method runs.
//
// A program that runs its module itself attaches an observer instead:
//
//   libtrace::ModuleObserver observer(module, {.name = "net"});
//   libtrace::ModuleObserver::Call call(observer, {x});   // until the end of the block
//   at::Tensor y = module.forward({x}).toTensor();
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libtrace/artifacts/graph_execution.h"
#include "libtrace/cache/compile_cache.h"
#include "libtrace/call_site.h"
#include "libtrace/export.h"
#include "libtrace/function_ref.h"
#include "libtrace/torch/loaded_models.h"

namespace libtrace LIBTRACE_EXPORT {

// Adds the methods in `source` to the module, as Module::define does, but remembers where the text
// is from: line 1 of `source` is `first_line` of `file` in provenance and in messages. Throws what
// libtorch's parser throws.
void DefineMethods(torch::jit::Module& module, const std::string& source, const std::string& file,
                   uint32_t first_line = 1);

struct TorchScriptOptions {
  std::string name = "forward";  // what records call the model
  std::string method = "forward";
  // One graph per combination of types, devices, shapes and requires_grad of the inputs. When this
  // many exist, other inputs run the module's own, general graph: `graph_execution` then has no
  // compile id.
  uint32_t max_specializations = 8;
  bool observe_ops = true;
  std::shared_ptr<GraphExecutionOrder> executions{};  // null = not logged
  // The first run of each graph and every n-th after it give a `libtrace_run_digest` with hashes of
  // their outputs, and of the optimised graph once it runs; 0 = none. Copies these outputs to the
  // CPU and waits for them. Runs are counted while tracing is on.
  uint32_t digest_every = 0;
};

// Thread-safe as the module is: concurrent Run calls are, changing parameters meanwhile is not.
// While one request specialises a graph, others with such inputs run the module's own graph.
class TorchScriptModel {
 public:
  TorchScriptModel(torch::jit::Module module, TorchScriptOptions options = {});
  ~TorchScriptModel();
  TorchScriptModel(const TorchScriptModel&) = delete;
  TorchScriptModel& operator=(const TorchScriptModel&) = delete;

  // `inputs` without self; missing ones take their defaults. Throws what the model throws; a
  // compile that fails so is recorded as failed, and tried again by the next call with such inputs.
  c10::IValue Run(std::vector<c10::IValue> inputs, CallSite location = CallSite::Current());

  torch::jit::Module& module();
  size_t specialization_count() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Records what TorchScriptModel records of calls that the program makes itself. The module runs as
// it does without: nothing is specialised, forced or locked for the observer. A compile is the
// first call with inputs of a new kind; the optimised graph is emitted once libtorch has one.
// Thread-safe.
class ModuleObserver {
 public:
  explicit ModuleObserver(torch::jit::Module module, TorchScriptOptions options = {});
  ~ModuleObserver();
  ModuleObserver(const ModuleObserver&) = delete;
  ModuleObserver& operator=(const ModuleObserver&) = delete;

  // One call of the method, which this thread makes while the object lives. Costs a load and a
  // branch when tracing is off.
  class Call {
   public:
    Call(ModuleObserver& observer, const std::vector<c10::IValue>& inputs,
         CallSite location = CallSite::Current()) noexcept;
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    // Optional, at the end of the call: what it returned, for `libtrace_torchscript_signature` and
    // TorchScriptOptions::digest_every (of an observer without the optimised graph).
    void Returned(const c10::IValue& output) noexcept;

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

// The inputs of a model, for the cache's key.
struct ModelRequest {
  std::string name{};
  std::string source{};               // text or bytes that define the model; hashed, not shown
  std::vector<c10::IValue> inputs{};  // examples; types, shapes and devices count, values do not
  // Everything else that changes the result.
  std::vector<std::pair<std::string, std::string>> options{};
};

struct CachedModel {
  torch::jit::Module module;
  CacheState state = CacheState::kMiss;
  std::string key{};
};

// The module from the cache, or else from `build` (parse, freeze, optimise …) and then kept in the
// cache as a TorchScript archive. Emits the cache event of the cache's layer and
// `libtrace_model_load`. Throws what `build` throws. An archive that cannot be loaded is removed
// and the model built. With `loaded`, a module that this process has already loaded is returned,
// unless the cache is switched off; it is shared: a change of it is visible to all users. The
// archive is written to a temporary file and kept from there; a hit is loaded from the cache's file
// if CompileCacheOptions::artifacts_as_files is set, else through memory. The key holds the version
// of libtorch, not the machine: where `build` makes something for one kind of machine, add to
// `options` what it depends on.
CachedModel LoadOrBuild(CompileCache& cache, const ModelRequest& request,
                        FunctionRef<torch::jit::Module()> build, LoadedModels* loaded = nullptr,
                        CallSite location = CallSite::Current());

}  // namespace LIBTRACE_EXPORT
