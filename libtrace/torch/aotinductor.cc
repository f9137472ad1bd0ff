#include "libtrace/torch/aotinductor.h"

#if LIBTRACE_HAS_AOTINDUCTOR

#include <c10/util/Exception.h>
#include <c10/util/Type.h>
#include <stdlib.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <type_traits>
#include <typeinfo>

#include "core/errno_scope.h"
#include "libtrace/artifacts/model_load.h"
#include "libtrace/cache/cache_key.h"
#include "libtrace/compile.h"
#include "libtrace/torch/native_code.h"
#include "libtrace/torch/op_observer.h"
#include "libtrace/torch/package.h"
#include "libtrace/trace.h"
#include "torch/compat.h"
#include "torch/model_digests.h"
#include "torch/model_parts.h"
#include "torch/package_records.h"

namespace libtrace {
namespace {

// A package of the cache under a path with the ending that libtorch expects: a link to the cache's
// file, or a copy. libtorch unpacks it while loading.
class TemporaryPackage {
 public:
  explicit TemporaryPackage(const CacheEntry& entry) {
    path_ = (std::filesystem::temp_directory_path() / "libtrace_XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot create " + path_);
    if (entry.artifact_file != nullptr) {
      std::error_code error;
      std::filesystem::create_symlink(entry.artifact_file->path(), path(), error);
      if (!error) return;
    } else {
      std::ofstream file(path(), std::ios::binary);
      file.write(entry.artifact.data(), static_cast<std::streamsize>(entry.artifact.size()));
      if (file.flush()) return;
    }
    Remove();
    throw std::runtime_error("cannot write " + path());
  }
  ~TemporaryPackage() { Remove(); }
  TemporaryPackage(const TemporaryPackage&) = delete;
  TemporaryPackage& operator=(const TemporaryPackage&) = delete;
  std::string path() const { return path_ + "/package.pt2"; }

 private:
  void Remove() const {
    unlink(path().c_str());
    rmdir(path_.c_str());
  }

  std::string path_;
};

using Loader = torch::inductor::AOTIModelPackageLoader;

template <class L = Loader>
std::unique_ptr<L> MakeLoader(const std::string& path, const AotiOptions& options) {
  if constexpr (std::is_constructible_v<L, std::string, std::string, bool, size_t,
                                        c10::DeviceIndex>) {
    return std::make_unique<L>(path, options.model_name, options.run_single_threaded,
                               options.num_runners,
                               static_cast<c10::DeviceIndex>(options.device_index));
  } else {
    if (options.run_single_threaded || options.num_runners != 1 || options.device_index != -1)
      throw std::invalid_argument("the loader of this libtorch has no options");
    return std::make_unique<L>(path, options.model_name);
  }
}

}  // namespace

// A package in memory; several models may run it.
struct LoadedPackage {
  Frame frame;
  CompileId compile_id;
  std::unique_ptr<Loader> owned_loader;
  Loader* loader = nullptr;  // its own, or the program's
  std::atomic<bool> is_observed = false;
  RunNumbers runs;
  std::optional<RunDigest> code;  // for AotiOptions::digest_every
  std::shared_ptr<const FusedOps> fused_ops;
  CacheState state = CacheState::kMiss;
  int64_t time_taken_ns = 0;  // what building it took, now or once
  uint64_t file_size_bytes = 0;

  // `shown_path` is what records call the package.
  void Load(Compile& compile, const AotiOptions& options, const std::string& path,
            const std::string& shown_path, ModelLoad load, CallSite location);
  std::vector<ModelWeight> Weights() const;
  // Also makes ready what runs need.
  void EmitLoaded(const AotiOptions& options, const std::string& path,
                  const std::string& shown_path, ModelLoad load, CallSite location);
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

void LoadedPackage::EmitLoaded(const AotiOptions& options, const std::string& path,
                               const std::string& shown_path, ModelLoad load, CallSite location) {
  load.memory_after_bytes = ResidentBytes();
  load.device_peak_after_bytes = DevicePeakBytes();
  load.weights = Weights();
  EmitModelLoad(load, location);
  if (options.observe_ops) MeasureRooflines(load.weights);  // not during a request
  Package package;
  if (!DescribePackage(path, package)) return;
  package.path = shown_path;
  if (package.weights.empty()) package.weights = load.weights;
  EmitPackage(package, location);
  if (options.digest_every != 0) code.emplace(options.name);
  fused_ops = std::make_shared<FusedOps>(
      EmitPackageCode(package, path, options.model_name, code ? &*code : nullptr, location));
  EmitPackageProvenance(package, location);
}

void LoadedPackage::Load(Compile& compile, const AotiOptions& options, const std::string& path,
                         const std::string& shown_path, ModelLoad load, CallSite location) {
  compile_id = compile.id();
  load.model = options.name;
  load.kind = "aotinductor";
  load.memory_before_bytes = ResidentBytes();
  load.device_peak_before_bytes = DevicePeakBytes();
  const int64_t start_ns = NowNs();
  owned_loader = MakeLoader(path, options);
  loader = owned_loader.get();
  load.duration_ns = NowNs() - start_ns;
  std::error_code ignored;
  const uintmax_t size = std::filesystem::file_size(path, ignored);
  if (!ignored) file_size_bytes = size;
  if (IsEnabled()) EmitLoaded(options, path, shown_path, std::move(load), location);
}

namespace {

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

CacheKey KeyOfPackage(const AotiRequest& request, const AotiOptions& options) {
  CacheKeyBuilder builder("ai");
  builder.Add("name", options.name).Add("model_name", options.model_name);
  builder.AddContent("source", std::to_string(request.source.size()) + " bytes", request.source);
  AddNativeCode(builder, request.compiler);
  for (const auto& [name, value] : request.options) builder.Add("options[" + name + "]", value);
  return builder.Build();
}

std::shared_ptr<LoadedPackage> LoadPackageNow(CompileCache& cache, const CacheKey& key,
                                              const AotiOptions& options,
                                              FunctionRef<std::string()> build, CallSite location) {
  auto package = std::make_shared<LoadedPackage>();
  Compile compile(package->frame, {.function = options.name}, location);
  RecordingFailure(compile, [&] {
    std::optional<std::string> built;
    const CacheResult result = cache.GetOrCompile(
        key, [](std::string_view) { return true; },
        [&] {
          built = build();
          CacheEntry entry;
          const Status status = ArtifactFile::Open(*built, entry.artifact_file);
          if (!status) throw std::runtime_error(status.message());
          return CompileOutput{.entry = std::move(entry)};
        },
        location);
    package->time_taken_ns = result.entry.time_taken_ns;
    if (result.state == CacheState::kHit) {
      try {
        const TemporaryPackage file(result.entry);
        package->Load(compile, options, file.path(), "cache:" + key.text,
                      {.state = "cache_hit", .cache_key = key.text}, location);
        package->state = CacheState::kHit;
        return;
      } catch (const std::exception& error) {  // of another libtorch or machine, or damaged
        compile.Restart(std::string("the cached package cannot be loaded: ") + error.what());
        static_cast<void>(cache.RemoveLocal(key.text, result.content_hash));
      }
    }
    if (!built) built = build();
    package->Load(compile, options, *built, *built, {.state = "compiled", .cache_key = key.text},
                  location);
  });
  return package;
}

}  // namespace

struct AotiObserver::Call::State {
  AotiObserver* observer = nullptr;
  CallSite location;
  std::optional<OpObserver> ops;
  std::optional<uint64_t> digested;  // number of a run that is to be hashed
  int64_t start_ns = 0;
  std::optional<int64_t> duration_ns;
  int uncaught_count = std::uncaught_exceptions();
};

AotiObserver::AotiObserver(Loader& loader, const std::string& package_path, AotiOptions options,
                           CallSite location)
    : options_(std::move(options)) {
  const detail::ErrnoScope keeps_errno;
  package_ = std::make_shared<LoadedPackage>();
  package_->loader = &loader;
  Compile compile(package_->frame, {.function = options_.name, .file = package_path}, location);
  package_->compile_id = compile.id();
  if (!IsEnabled()) return;
  try {
    package_->EmitLoaded(options_, package_path, package_path,
                         {.model = options_.name, .kind = "aotinductor", .state = "loaded"},
                         location);
  } catch (const std::exception&) {  // no memory: the loader runs all the same
  }
}
AotiObserver::AotiObserver(std::shared_ptr<LoadedPackage> package, AotiOptions options)
    : package_(std::move(package)), options_(std::move(options)) {}
AotiObserver::~AotiObserver() {
  const detail::ErrnoScope keeps_errno;
  package_.reset();
}

AotiObserver::Call::Call(AotiObserver& observer, CallSite location) noexcept {
  if (!IsEnabled()) return;
  const detail::ErrnoScope keeps_errno;
  try {
    auto state = std::make_unique<State>();
    state->observer = &observer;
    state->location = location;
    LoadedPackage& package = *observer.package_;
    if (observer.options_.observe_ops && !package.is_observed.exchange(true)) {
      OpObserverOptions observe;
      observe.context = Context{package.compile_id, 0, ""};
      observe.fused_ops = package.fused_ops;
      state->ops.emplace(observe, location);
    }
    state->digested = package.runs.Next(observer.options_.digest_every);
    state->start_ns = NowNs();
    state_ = std::move(state);
  } catch (const std::exception&) {  // no memory: the run is not observed
  }
}

AotiObserver::Call::~Call() {
  if (state_ == nullptr) return;
  const detail::ErrnoScope keeps_errno;
  const auto state = std::move(state_);
  const int64_t duration_ns = state->duration_ns.value_or(NowNs() - state->start_ns);
  const AotiOptions& options = state->observer->options_;
  const bool has_thrown = std::uncaught_exceptions() > state->uncaught_count;
  if (options.executions == nullptr || has_thrown) return;
  options.executions->Executed(state->observer->package_->compile_id, options.name, duration_ns,
                               state->location);
}

void AotiObserver::Call::Returned(const std::vector<at::Tensor>& outputs) noexcept {
  if (state_ == nullptr) return;
  const detail::ErrnoScope keeps_errno;
  state_->duration_ns = NowNs() - state_->start_ns;
  state_->ops.reset();
  if (!state_->digested) return;
  const LoadedPackage& package = *state_->observer->package_;
  try {
    EmitRunDigest(state_->observer->options_.name, *state_->digested,
                  Context{package.compile_id, 0, ""}, package.code, c10::IValue(outputs),
                  state_->location);
  } catch (const std::exception&) {  // no memory
  }
}

struct AotiModel::Impl {
  std::shared_ptr<LoadedPackage> package;
  AotiObserver observer;

  Impl(std::shared_ptr<LoadedPackage> loaded, AotiOptions options)
      : package(loaded), observer(std::move(loaded), std::move(options)) {}
};

AotiModel::AotiModel(const std::string& package_path, AotiOptions options, CallSite location) {
  const detail::ErrnoScope keeps_errno;
  auto package = std::make_shared<LoadedPackage>();
  {
    Compile compile(package->frame, {.function = options.name, .file = package_path}, location);
    RecordingFailure(compile, [&] {
      package->Load(compile, options, package_path, package_path, {.state = "loaded"}, location);
    });
  }
  impl_ = MakeImpl(std::move(package), std::move(options));
}
AotiModel::AotiModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AotiModel::~AotiModel() {
  const detail::ErrnoScope keeps_errno;
  impl_.reset();
}

std::unique_ptr<AotiModel::Impl> AotiModel::MakeImpl(std::shared_ptr<LoadedPackage> package,
                                                     AotiOptions options) {
  return std::make_unique<Impl>(std::move(package), std::move(options));
}

std::vector<at::Tensor> AotiModel::Run(const std::vector<at::Tensor>& inputs, void* stream,
                                       CallSite location) {
  const detail::ErrnoScope keeps_errno;
  AotiObserver::Call call(impl_->observer, location);
  std::vector<at::Tensor> outputs = impl_->package->loader->run(inputs, stream);
  call.Returned(outputs);
  return outputs;
}

Loader& AotiModel::loader() { return *impl_->package->loader; }

CachedAotiModel LoadOrBuildPackage(CompileCache& cache, const AotiRequest& request,
                                   const AotiOptions& options, FunctionRef<std::string()> build,
                                   LoadedModels* loaded, CallSite location) {
  const detail::ErrnoScope keeps_errno;
  const int64_t start_ns = NowNs();
  const CacheKey key = KeyOfPackage(request, options);
  const auto load_now = [&] {
    std::shared_ptr<LoadedPackage> package = LoadPackageNow(cache, key, options, build, location);
    const uint64_t size_bytes = package->file_size_bytes;
    return LoadedModels::Model{std::move(package), size_bytes};
  };
  bool is_held = false;
  const bool may_share = loaded != nullptr && cache.enabled();
  const auto found = std::static_pointer_cast<LoadedPackage>(
      may_share ? loaded->GetOrLoad(key.text, load_now, &is_held) : load_now().object);
  const LoadedPackage& package = *found;
  if (is_held) {
    const ContextScope scope(Context{package.compile_id, 0, ""});
    EmitMemoryHit(cache.layer(), key, package.time_taken_ns, location);
    if (IsEnabled()) {
      EmitModelLoad({.model = options.name,
                     .kind = "aotinductor",
                     .state = "memory_hit",
                     .cache_key = key.text,
                     .duration_ns = NowNs() - start_ns,
                     .weights = package.Weights()},
                    location);
    }
  }
  const CacheState state = is_held ? CacheState::kHit : package.state;
  return {std::unique_ptr<AotiModel>(new AotiModel(AotiModel::MakeImpl(found, options))), state,
          key.text};
}

}  // namespace libtrace

#endif
