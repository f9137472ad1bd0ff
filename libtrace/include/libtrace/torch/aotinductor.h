// AOTInductor packages under a compile scope: what is in them, what runs, for how long.
// libtorch 2.6 and newer.
//
//   libtrace::AotiModel model("classifier.pt2", {.name = "classifier"});   // 0/0: loaded
//   std::vector<at::Tensor> outputs = model.Run({x});
//
// A program that has a loader already attaches an observer and keeps its loader:
//
//   libtrace::AotiObserver observer(loader, "classifier.pt2", {.name = "classifier"});
//   libtrace::AotiObserver::Call call(observer);   // until the end of the block
//   outputs = loader.run({x});
//
// Loading emits, in addition to libtrace::Compile: `libtrace_package`, `libtrace_model_load`, the
// package's generated code (`graph_dump`), and both provenance records if the package has
// kernel information (see package.h). The first run emits what OpObserver does; kernels are seen by
// name if the package was compiled with TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE=1, the ops it calls
// always. libtorch does not know the tensors of a kernel: they are read from the package's code, and
// those of the ops that it calls from its kernel information (2.14). Without them (dynamic sizes,
// branches, GPU kernels) a kernel has no estimate. Works the same, without records, when tracing is
// off.
//
// libtorch does not check shapes unless AOTI_RUNTIME_CHECK_INPUTS=1 is set: a wrong one may give
// wrong results.
#pragma once

#include <torch/version.h>
#if TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR >= 206
#define LIBTRACE_HAS_AOTINDUCTOR 1

#include <ATen/core/Tensor.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

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

struct AotiOptions {
  // What records call the model; not the model's name within the package.
  std::string name = "model";
  std::string model_name = "model";  // within the package
  bool observe_ops = true;
  std::shared_ptr<GraphExecutionOrder> executions{};  // null = not logged
  // Of libtorch's loader, for models that libtrace loads. Where the installed loader does not have
  // them (2.6), anything but these values is an error.
  bool run_single_threaded = false;
  size_t num_runners = 1;
  int device_index = -1;
  // The first run and every n-th after it give a `libtrace_run_digest` with hashes of their outputs
  // and of the package's generated code; 0 = none. Copies these outputs to the CPU and waits for
  // them. Runs are counted while tracing is on.
  uint32_t digest_every = 0;
};

struct LoadedPackage;

// Records what AotiModel records, of a loader that the program made and runs itself; the loader
// must outlive it. The package at `package_path` is only read. Thread-safe.
class AotiObserver {
 public:
  AotiObserver(torch::inductor::AOTIModelPackageLoader& loader, const std::string& package_path,
               AotiOptions options = {}, CallSite location = CallSite::Current());
  ~AotiObserver();
  AotiObserver(const AotiObserver&) = delete;
  AotiObserver& operator=(const AotiObserver&) = delete;

  // One run of the loader, which this thread makes while the object lives. Nearly free when
  // tracing is off.
  class Call {
   public:
    explicit Call(AotiObserver& observer, CallSite location = CallSite::Current()) noexcept;
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    // Optional, at the end of the run: what it returned, for AotiOptions::digest_every.
    void Returned(const std::vector<at::Tensor>& outputs) noexcept;

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  friend class AotiModel;
  AotiObserver(std::shared_ptr<LoadedPackage> package, AotiOptions options);
  std::shared_ptr<LoadedPackage> package_;
  AotiOptions options_;
};

struct AotiRequest;
struct CachedAotiModel;

// Thread-safe as the package is: concurrent Run calls are.
class AotiModel {
 public:
  // Throws what libtorch throws (no such file, another version's package, another machine's); the
  // load is then recorded as failed.
  explicit AotiModel(const std::string& package_path, AotiOptions options = {},
                     CallSite location = CallSite::Current());
  ~AotiModel();
  AotiModel(const AotiModel&) = delete;
  AotiModel& operator=(const AotiModel&) = delete;

  // `stream` as for libtorch's loader: null = the current one.
  std::vector<at::Tensor> Run(const std::vector<at::Tensor>& inputs, void* stream = nullptr,
                              CallSite location = CallSite::Current());
  // Libtorch's own, for constants, metadata and what else it offers.
  torch::inductor::AOTIModelPackageLoader& loader();

 private:
  friend CachedAotiModel LoadOrBuildPackage(CompileCache&, const AotiRequest&, const AotiOptions&,
                                            FunctionRef<std::string()>, LoadedModels*, CallSite);
  struct Impl;
  explicit AotiModel(std::unique_ptr<Impl> impl);
  static std::unique_ptr<Impl> MakeImpl(std::shared_ptr<LoadedPackage> package,
                                        AotiOptions options);
  std::unique_ptr<Impl> impl_;
};

// The inputs of a package, for the cache's key. The key also has the components of native_code.h.
struct AotiRequest {
  std::string source{};  // text or bytes that define the model; hashed, not shown
  // Of C++, where CXX does not say it: a host that has no compiler and is to be served from the
  // cache names the one that the others have. "" = see AddNativeCode.
  std::string compiler{};
  // Everything else that changes the result.
  std::vector<std::pair<std::string, std::string>> options{};
};

struct CachedAotiModel {
  std::unique_ptr<AotiModel> model;
  CacheState state = CacheState::kMiss;
  std::string key{};
};

// The package from the cache, or else the file whose path `build` gives (compiled now, or from
// elsewhere), which is then kept in the cache; loaded either way, all in one compile. Emits the
// cache event of the cache's layer. A cached package that cannot be loaded is removed and built.
// Throws what `build` and loading throw. With `loaded`, a model that this process has already
// loaded is returned, unless the cache is switched off: there is then no compile, and its runs
// belong to the compile that loaded it. The package is read from its file in pieces; a hit passes
// through memory unless CompileCacheOptions::artifacts_as_files is set.
CachedAotiModel LoadOrBuildPackage(CompileCache& cache, const AotiRequest& request,
                                   const AotiOptions& options, FunctionRef<std::string()> build,
                                   LoadedModels* loaded = nullptr,
                                   CallSite location = CallSite::Current());

}  // namespace LIBTRACE_EXPORT
#endif
