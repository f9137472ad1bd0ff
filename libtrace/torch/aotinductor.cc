#include "libtrace/torch/aotinductor.h"

#if LIBTRACE_HAS_AOTINDUCTOR

#include <c10/util/Exception.h>
#include <c10/util/Type.h>
#include <stdlib.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <typeinfo>

#include "libtrace/artifacts/graph_dump.h"
#include "libtrace/artifacts/model_load.h"
#include "libtrace/artifacts/provenance.h"
#include "libtrace/cache/cache_key.h"
#include "libtrace/compile.h"
#include "libtrace/torch/op_observer.h"
#include "libtrace/torch/package.h"
#include "libtrace/trace.h"
#include "torch/compat.h"
#include "torch/model_parts.h"
#include "torch/zip_file.h"

namespace libtrace {
namespace {

constexpr uint64_t kMaxCodeSize = uint64_t{64} << 20;

// Under the names that PyTorch gives it while it compiles a package: the wrapper calls the kernels
// of the other file; packages of 2.6 hold one file.
std::string_view DumpName(std::string_view file) {
  if (file.ends_with(".wrapper.cpp")) return "inductor_aot_wrapper_code";
  if (file.ends_with(".kernel.cpp")) return "inductor_aot_kernel_code";
  return "inductor_aot_code";
}

void EmitGeneratedCode(const std::string& path) {
  ZipFile zip;
  if (!zip.Open(path)) return;
  for (const ZipFile::Member& member : zip.members()) {
    const std::string_view name = member.name;
    if (name.find("data/aotinductor/") == std::string_view::npos || !name.ends_with(".cpp"))
      continue;
    if (const auto code = zip.Read(member, kMaxCodeSize))
      EmitGraphDump(DumpName(name), "cpp", name, *code);
  }
}

void EmitProvenance(const Package& package) {
  if (CurrentProvenanceLevel() == ProvenanceLevel::kOff) return;
  Provenance provenance;
  for (const PackageKernel& kernel : package.kernels) {
    for (const std::string& node : kernel.post_grad_nodes)
      provenance.AddKernelToPost(kernel.name, node);
    for (const std::string& trace : kernel.stack_traces)
      provenance.AddStackTrace(kernel.name, trace);
    // The package lists both kinds of nodes per kernel, not which became which: that is known only
    // of a single one.
    if (kernel.post_grad_nodes.size() != 1) continue;
    for (const std::string& node : kernel.pre_grad_nodes)
      provenance.AddPreToPost(node, kernel.post_grad_nodes[0]);
  }
  provenance.Emit();
}

// A file of its own for a package out of the cache; libtorch unpacks it while loading.
class TemporaryPackage {
 public:
  explicit TemporaryPackage(const std::string& content) {
    path_ = (std::filesystem::temp_directory_path() / "libtrace_XXXXXX.pt2").string();
    const int fd = mkstemps(path_.data(), 4);
    if (fd < 0) throw std::runtime_error("cannot create " + path_);
    close(fd);
    std::ofstream file(path_, std::ios::binary);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!file.flush()) {
      unlink(path_.c_str());
      throw std::runtime_error("cannot write " + path_);
    }
  }
  ~TemporaryPackage() { unlink(path_.c_str()); }
  TemporaryPackage(const TemporaryPackage&) = delete;
  TemporaryPackage& operator=(const TemporaryPackage&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A package in memory; several models may run it.
struct LoadedPackage {
  Frame frame;
  CompileId compile_id;
  std::unique_ptr<torch::inductor::AOTIModelPackageLoader> loader;
  std::atomic<bool> is_observed = false;
  CacheState state = CacheState::kMiss;
  int64_t time_taken_ns = 0;  // what building it took, now or once
  uint64_t file_size_bytes = 0;

  // `shown_path` is what records call the package.
  void Load(Compile& compile, const AotiOptions& options, const std::string& path,
            const std::string& shown_path, ModelLoad load);
  std::vector<ModelWeight> Weights() const;
  void EmitLoaded(const std::string& path, const std::string& shown_path, ModelLoad load) const;
};

std::vector<ModelWeight> LoadedPackage::Weights() const {
  std::vector<ModelWeight> weights;
#if LIBTRACE_AOTI_CONSTANTS
  for (const auto& [name, tensor] : loader->get_runner()->extract_constants_map(false)) {
    if (tensor.defined()) weights.push_back(WeightOf(name, tensor));
  }
#endif
  return weights;
}

void LoadedPackage::EmitLoaded(const std::string& path, const std::string& shown_path,
                               ModelLoad load) const {
  load.memory_after_bytes = ResidentBytes();
  load.weights = Weights();
  EmitModelLoad(load);
  Package package;
  if (!DescribePackage(path, package)) return;
  package.path = shown_path;
  package.weights = load.weights;
  EmitPackage(package);
  EmitGeneratedCode(path);
  EmitProvenance(package);
}

void LoadedPackage::Load(Compile& compile, const AotiOptions& options, const std::string& path,
                         const std::string& shown_path, ModelLoad load) {
  compile_id = compile.id();
  load.model = options.name;
  load.kind = "aotinductor";
  load.memory_before_bytes = ResidentBytes();
  const int64_t start_ns = NowNs();
  loader = std::make_unique<torch::inductor::AOTIModelPackageLoader>(path, options.model_name);
  load.duration_ns = NowNs() - start_ns;
  std::error_code ignored;
  const uintmax_t size = std::filesystem::file_size(path, ignored);
  if (!ignored) file_size_bytes = size;
  if (IsEnabled()) EmitLoaded(path, shown_path, std::move(load));
}

// Runs `body`; what it throws is the compile's failure, and passed on.
void RecordingFailure(Compile& compile, FunctionRef<void()> body) {
  try {
    body();
  } catch (const c10::Error& error) {
    compile.Fail(c10::demangle(typeid(error).name()), error.what_without_backtrace());
    throw;
  } catch (const std::exception& error) {
    compile.Fail(c10::demangle(typeid(error).name()), error.what());
    throw;
  }
}

CacheKey KeyOf(const AotiRequest& request, const AotiOptions& options) {
  CacheKeyBuilder builder("ai");
  builder.Add("name", options.name).Add("model_name", options.model_name);
  builder.AddContent("source", std::to_string(request.source.size()) + " bytes", request.source);
  builder.Add("torch_version", TORCH_VERSION);
  for (const auto& [name, value] : request.options) builder.Add("options[" + name + "]", value);
  return builder.Build();
}

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw std::runtime_error("cannot read " + path);
  return content;
}

std::shared_ptr<LoadedPackage> LoadNow(CompileCache& cache, const CacheKey& key,
                                       const AotiOptions& options,
                                       FunctionRef<std::string()> build) {
  auto package = std::make_shared<LoadedPackage>();
  Compile compile(package->frame, {.function = options.name});
  RecordingFailure(compile, [&] {
    std::optional<std::string> built;
    const CacheResult result = cache.GetOrCompile(
        key, [](std::string_view) { return true; },
        [&] {
          built = build();
          return CompileOutput{.entry = {.artifact = ContentOf(*built)}};
        });
    package->time_taken_ns = result.entry.time_taken_ns;
    if (result.state == CacheState::kHit) {
      try {
        const TemporaryPackage file(result.entry.artifact);
        package->Load(compile, options, file.path(), "cache:" + key.text,
                      {.state = "cache_hit", .cache_key = key.text});
        package->state = CacheState::kHit;
        return;
      } catch (const std::exception& error) {  // of another libtorch or machine, or damaged
        compile.Restart(std::string("the cached package cannot be loaded: ") + error.what());
        static_cast<void>(cache.Remove(key.text));
      }
    }
    if (!built) built = build();
    package->Load(compile, options, *built, *built, {.state = "compiled", .cache_key = key.text});
  });
  return package;
}

}  // namespace

struct AotiModel::Impl {
  AotiOptions options;
  std::shared_ptr<LoadedPackage> package;
};

AotiModel::AotiModel(const std::string& package_path, AotiOptions options)
    : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
  impl_->package = std::make_shared<LoadedPackage>();
  Compile compile(impl_->package->frame, {.function = impl_->options.name, .file = package_path});
  RecordingFailure(compile, [&] {
    impl_->package->Load(compile, impl_->options, package_path, package_path, {.state = "loaded"});
  });
}
AotiModel::AotiModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AotiModel::~AotiModel() = default;

std::vector<at::Tensor> AotiModel::Run(const std::vector<at::Tensor>& inputs) {
  LoadedPackage& package = *impl_->package;
  std::optional<OpObserver> observer;
  if (impl_->options.observe_ops && IsEnabled() && !package.is_observed.exchange(true)) {
    OpObserverOptions observe;
    observe.context = Context{package.compile_id, 0, ""};
    observer.emplace(observe);
  }
  const int64_t start_ns = NowNs();
  std::vector<at::Tensor> outputs = package.loader->run(inputs);
  if (impl_->options.executions) {
    impl_->options.executions->Executed(package.compile_id, impl_->options.name,
                                        NowNs() - start_ns);
  }
  return outputs;
}

CachedAotiModel LoadOrBuildPackage(CompileCache& cache, const AotiRequest& request,
                                   const AotiOptions& options, FunctionRef<std::string()> build,
                                   LoadedModels* loaded) {
  const int64_t start_ns = NowNs();
  const CacheKey key = KeyOf(request, options);
  const auto load_now = [&] {
    std::shared_ptr<LoadedPackage> package = LoadNow(cache, key, options, build);
    const uint64_t size_bytes = package->file_size_bytes;
    return LoadedModels::Model{std::move(package), size_bytes};
  };
  bool is_held = false;
  const bool may_share = loaded != nullptr && cache.enabled();
  auto impl = std::make_unique<AotiModel::Impl>();
  impl->options = options;
  impl->package = std::static_pointer_cast<LoadedPackage>(
      may_share ? loaded->GetOrLoad(key.text, load_now, &is_held) : load_now().object);
  const LoadedPackage& package = *impl->package;
  if (is_held) {
    const ContextScope scope(Context{package.compile_id, 0, ""});
    EmitMemoryHit(cache.layer(), key, package.time_taken_ns);
    if (IsEnabled()) {
      EmitModelLoad({.model = options.name,
                     .kind = "aotinductor",
                     .state = "memory_hit",
                     .cache_key = key.text,
                     .duration_ns = NowNs() - start_ns,
                     .weights = package.Weights()});
    }
  }
  const CacheState state = is_held ? CacheState::kHit : package.state;
  return {std::unique_ptr<AotiModel>(new AotiModel(std::move(impl))), state, key.text};
}

}  // namespace libtrace

#endif
