#include "libtrace/torch/torchscript.h"

#include <c10/util/Type.h>
#include <fcntl.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/lexer.h>
#include <torch/csrc/jit/frontend/parser.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <typeinfo>

#include "core/errno_scope.h"
#include "core/per_process.h"
#include "libtrace/artifacts/model_load.h"
#include "libtrace/cache/cache_key.h"
#include "libtrace/compile.h"
#include "libtrace/torch/op_observer.h"
#include "libtrace/trace.h"
#include "torch/compat.h"
#include "torch/input_signature.h"
#include "torch/model_digests.h"
#include "torch/model_parts.h"
#include "torch/node_marks.h"
#include "torch/torchscript_records.h"

namespace libtrace {
namespace {

struct Specialization {
  InputSignature signature;
  CompileId compile_id;
  std::unique_ptr<torch::jit::GraphExecutor> executor;
  OptimizedFacts facts;
  bool is_observed = false;
  RunNumbers runs;
  std::optional<RunDigest> code;  // of the optimised graph
};

// The interpreter's message quotes the source as Python would; the last place it names is the
// innermost.
void RecordFailure(Compile& compile, std::string_view type, const std::string& message) {
  std::string file;
  std::optional<uint32_t> line;
  const size_t place = message.rfind("File \"");
  if (place != std::string::npos) {
    const size_t end = message.find("\", line ", place);
    if (end != std::string::npos) {
      file = message.substr(place + 6, end - place - 6);
      line = static_cast<uint32_t>(std::strtoul(message.c_str() + end + 8, nullptr, 10));
    }
  }
  compile.Fail(type, message, file, line);
}

}  // namespace

void DefineMethods(torch::jit::Module& module, const std::string& source, const std::string& file,
                   uint32_t first_line) {
  const detail::ErrnoScope keeps_errno;
  auto text = std::make_shared<torch::jit::Source>(source, file, first_line);
  torch::jit::Parser parser(text);
  std::vector<torch::jit::Def> definitions;
  std::vector<torch::jit::ResolverPtr> resolvers;
  while (parser.lexer().cur().kind != torch::jit::TK_EOF) {
    definitions.emplace_back(parser.parseFunction(/*is_method=*/true));
    resolvers.push_back(torch::jit::nativeResolver());
  }
  const torch::jit::SimpleSelf self(module.type());
  module._ivalue()->compilation_unit()->define(*module.type()->name(), {}, {}, definitions,
                                               resolvers, &self);
}

struct Specializations {
  std::mutex mutex;  // guards what follows, and what is in it
  // Newest last; those without an executor are being compiled.
  std::vector<std::shared_ptr<Specialization>> list;

  std::shared_ptr<Specialization> Find(const InputSignature& signature) const;
  void Remove(const Specialization* specialization);
};

struct TorchScriptModel::Impl {
  torch::jit::Module module;
  TorchScriptOptions options;
  Frame frame;
  detail::PerProcess<Specializations> specializations;
  RunNumbers general_runs;

  c10::IValue RunGeneral(torch::jit::Stack stack, torch::jit::Function& function,
                         CallSite location);
  c10::IValue CompileAndRun(torch::jit::Stack stack, Specialization& made,
                            torch::jit::Function& function, CallSite location);
  c10::IValue RunSpecialized(Specialization& specialization, torch::jit::Stack stack,
                             CallSite location);
};

std::shared_ptr<Specialization> Specializations::Find(const InputSignature& signature) const {
  for (auto one = list.rbegin(); one != list.rend(); ++one) {
    if ((*one)->signature == signature) return *one;
  }
  return nullptr;
}

void Specializations::Remove(const Specialization* specialization) {
  const std::lock_guard lock(mutex);
  list.erase(std::remove_if(list.begin(), list.end(),
                            [&](const auto& s) { return s.get() == specialization; }),
             list.end());
}

c10::IValue TorchScriptModel::Impl::CompileAndRun(torch::jit::Stack stack, Specialization& made,
                                                  torch::jit::Function& function,
                                                  CallSite location) {
  const auto graph = torch::jit::toGraphFunction(function).optimized_graph()->copy();
  std::string file;
  CompileDescription description;
  size_t earlier_count = 0;
  Specializations& known = specializations.get();
  {
    const std::lock_guard lock(known.mutex);
    std::vector<std::pair<CompileId, const InputSignature*>> earlier;
    for (const auto& one : known.list) {
      if (one->executor != nullptr) earlier.emplace_back(one->compile_id, &one->signature);
    }
    earlier_count = earlier.size();
    description = DescribeCompile(options.name, earlier, made.signature, *graph, file);
  }
  Compile compile(frame, description, location);
  EmitGraphBefore(compile, *graph, earlier_count, made.signature.size(), location);
  made.compile_id = compile.id();
  auto executor = std::make_unique<torch::jit::GraphExecutor>(graph->copy(), options.name);
  try {
    // Libtorch specialises from what it saw in one run, whose result is as good as any; the passes
    // then run in getPlanFor.
    torch::jit::Stack result = stack;
    const std::optional<uint64_t> digested = made.runs.Next(options.digest_every);
    const int64_t start_ns = NowNs();
    executor->run(result);
    if (options.executions)
      options.executions->Executed(compile.id(), options.name, NowNs() - start_ns, location);
    EmitSignature(options.name, made.signature, result.front(), location);
    if (digested)
      EmitRunDigest(options.name, *digested, CurrentContext(), {}, result.front(), location);
    try {
      const TimedSpan span("libtrace_torchscript_optimize", options.name, location);
      const MarkingScope marking(CurrentProvenanceLevel() == ProvenanceLevel::kFull);
      const auto& plan = executor->getPlanFor(stack);
      made.facts = EmitOptimizedRecords(*graph, *plan.graph, &compile.metrics(), location);
      if (options.digest_every != 0)
        made.code.emplace(options.name).Kernel("optimized_graph", plan.graph->toString(false));
    } catch (const std::exception& error) {
      compile.Restart(std::string("optimising failed, the graph runs as it is: ") + error.what());
    }
    const std::lock_guard lock(known.mutex);
    made.executor = std::move(executor);  // from now on others use it
    return result.front();
  } catch (const c10::Error& error) {
    RecordFailure(compile, c10::demangle(typeid(error).name()), error.what_without_backtrace());
    throw;
  } catch (const std::exception& error) {
    RecordFailure(compile, c10::demangle(typeid(error).name()), error.what());
    throw;
  }
}

c10::IValue TorchScriptModel::Impl::RunSpecialized(Specialization& specialization,
                                                   torch::jit::Stack stack, CallSite location) {
  std::optional<OpObserver> observer;
  const Context context{specialization.compile_id, 0, ""};
  bool is_first = false;
  if (options.observe_ops && IsEnabled()) {
    const std::lock_guard lock(specializations->mutex);
    is_first = !std::exchange(specialization.is_observed, true);
  }
  if (is_first) {
    OpObserverOptions observe;
    observe.context = context;
    observe.fused_ops = specialization.facts.fused_ops;
    observer.emplace(observe, location);
  }
  const std::optional<uint64_t> digested = specialization.runs.Next(options.digest_every);
  std::optional<MarkedRun> marked;
  if (!specialization.facts.mark_names.empty()) marked.emplace(&specialization.facts.mark_names);
  const int64_t start_ns = NowNs();
  specialization.executor->run(stack);
  if (options.executions) {
    options.executions->Executed(specialization.compile_id, options.name, NowNs() - start_ns,
                                 location);
  }
  marked.reset();
  observer.reset();
  if (digested) {
    EmitRunDigest(options.name, *digested, context, specialization.code, stack.front(), location);
  }
  return stack.front();
}

TorchScriptModel::TorchScriptModel(torch::jit::Module module, TorchScriptOptions options) {
  const detail::ErrnoScope keeps_errno;
  impl_ = std::make_unique<Impl>();
  impl_->module = std::move(module);
  impl_->options = std::move(options);
  if (impl_->options.observe_ops && IsEnabled()) MeasureRooflines(WeightsOf(impl_->module));
}
TorchScriptModel::~TorchScriptModel() {
  const detail::ErrnoScope keeps_errno;
  impl_.reset();
}

torch::jit::Module& TorchScriptModel::module() { return impl_->module; }

size_t TorchScriptModel::specialization_count() const {
  const detail::ErrnoScope keeps_errno;
  Specializations& known = impl_->specializations.get();
  const std::lock_guard lock(known.mutex);
  return known.list.size();
}

c10::IValue TorchScriptModel::Impl::RunGeneral(torch::jit::Stack stack,
                                               torch::jit::Function& function, CallSite location) {
  if (!IsEnabled()) {
    function.run(stack);
    return stack.front();
  }
  const std::optional<uint64_t> digested = general_runs.Next(options.digest_every);
  const int64_t start_ns = NowNs();
  function.run(stack);
  if (options.executions)
    options.executions->Executed({}, options.name, NowNs() - start_ns, location);
  if (digested) EmitRunDigest(options.name, *digested, {}, {}, stack.front(), location);
  return stack.front();
}

c10::IValue TorchScriptModel::Run(std::vector<c10::IValue> inputs, CallSite location) {
  const detail::ErrnoScope keeps_errno;
  torch::jit::Function& function = impl_->module.get_method(impl_->options.method).function();
  torch::jit::Stack stack;
  stack.reserve(inputs.size() + 1);
  stack.emplace_back(impl_->module._ivalue());
  for (c10::IValue& input : inputs) stack.push_back(std::move(input));
  function.getSchema().checkAndNormalizeInputs(stack, {});
  if (!IsEnabled()) return impl_->RunGeneral(std::move(stack), function, location);
  InputSignature signature = SignatureOf(c10::ArrayRef<c10::IValue>(stack).slice(1), 1, function);
  std::shared_ptr<Specialization> specialization, made;
  Specializations& known = impl_->specializations.get();
  {
    const std::lock_guard lock(known.mutex);
    specialization = known.Find(signature);
    const size_t count = known.list.size();
    if (specialization == nullptr && count < impl_->options.max_specializations) {
      made = std::make_shared<Specialization>();
      made->signature = std::move(signature);
      known.list.push_back(made);
    } else if (specialization != nullptr && specialization->executor == nullptr) {
      specialization.reset();  // another request compiles it: this one does not wait
    }
  }
  if (made != nullptr) {
    try {
      return impl_->CompileAndRun(std::move(stack), *made, function, location);
    } catch (...) {
      known.Remove(made.get());
      throw;
    }
  }
  if (specialization != nullptr)
    return impl_->RunSpecialized(*specialization, std::move(stack), location);
  return impl_->RunGeneral(std::move(stack), function, location);
}

namespace {

CacheKey KeyOfModel(const ModelRequest& request) {
  CacheKeyBuilder builder("ts");
  builder.Add("name", request.name);
  builder.AddContent("source", std::to_string(request.source.size()) + " bytes", request.source);
  builder.Add("torch_version", TORCH_VERSION);
  InputSignature signature;
  for (size_t i = 0; i < request.inputs.size(); ++i) AppendFacts("", request.inputs[i], signature);
  for (size_t i = 0; i < signature.size(); ++i) {
    builder.Add("inputs[" + std::to_string(i) + "]", ToText(signature[i]));
  }
  for (const auto& [name, value] : request.options) builder.Add("options[" + name + "]", value);
  return builder.Build();
}

struct LoadedModule {
  torch::jit::Module module;
  CacheState state = CacheState::kMiss;
  int64_t time_taken_ns = 0;  // what building it took, now or once
  uint64_t archive_size_bytes = 0;
};

// The archive in a file without a name: it may be larger than memory has room for twice.
std::shared_ptr<const ArtifactFile> SaveArchive(const torch::jit::Module& module) {
  std::string path = (std::filesystem::temp_directory_path() / "libtrace_XXXXXX").string();
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) throw std::runtime_error("cannot create " + path);
  close(fd);
  std::shared_ptr<const ArtifactFile> file;
  Status status;
  try {
    module.save(path);
    status = ArtifactFile::Open(path, file);
  } catch (...) {
    unlink(path.c_str());
    throw;
  }
  unlink(path.c_str());
  if (!status) throw std::runtime_error(status.message());
  return file;
}

torch::jit::Module LoadArchive(const CacheEntry& entry) {
  if (entry.artifact_file != nullptr) return torch::jit::load(entry.artifact_file->path());
  std::istringstream archive(entry.artifact);
  return torch::jit::load(archive);
}

LoadedModule LoadModuleNow(CompileCache& cache, const CacheKey& key,
                           FunctionRef<torch::jit::Module()> build, CallSite location) {
  std::optional<torch::jit::Module> module;
  const auto compile = [&] {
    module = build();
    return CompileOutput{.entry = {.artifact_file = SaveArchive(*module)}};
  };
  CacheResult result = cache.GetOrCompile(
      key, [](std::string_view) { return true; }, compile, location);
  if (!module && result.state == CacheState::kHit) {
    try {
      module = LoadArchive(result.entry);
    } catch (const std::exception&) {  // of another libtorch, or damaged in a way that its checksum
                                       // does not show
      static_cast<void>(cache.RemoveLocal(key.text, result.content_hash));
      result.state = CacheState::kMiss;
    }
  }
  if (!module) module = build();
  const uint64_t size_bytes = result.entry.artifact_file != nullptr
                                  ? result.entry.artifact_file->size_bytes()
                                  : result.entry.artifact.size();
  return {std::move(*module), result.state, result.entry.time_taken_ns, size_bytes};
}

}  // namespace

CachedModel LoadOrBuild(CompileCache& cache, const ModelRequest& request,
                        FunctionRef<torch::jit::Module()> build, LoadedModels* loaded,
                        CallSite location) {
  const detail::ErrnoScope keeps_errno;
  const int64_t start_ns = NowNs();
  ModelLoad load{.model = request.name, .kind = "torchscript"};
  load.memory_before_bytes = ResidentBytes();
  load.device_peak_before_bytes = DevicePeakBytes();
  const CacheKey key = KeyOfModel(request);
  const auto load_now = [&] {
    auto made = std::make_shared<LoadedModule>(LoadModuleNow(cache, key, build, location));
    // What was frozen into the graph is no weight.
    return LoadedModels::Model{
        made, std::max(SizeOfWeights(WeightsOf(made->module)), made->archive_size_bytes)};
  };
  bool is_held = false;
  const bool may_share = loaded != nullptr && cache.enabled();
  const auto found = std::static_pointer_cast<LoadedModule>(
      may_share ? loaded->GetOrLoad(key.text, load_now, &is_held) : load_now().object);
  const CacheState state = is_held ? CacheState::kHit : found->state;
  if (is_held) EmitMemoryHit(cache.layer(), key, found->time_taken_ns, location);
  load.state = is_held ? "memory_hit" : state == CacheState::kHit ? "cache_hit" : "compiled";
  load.cache_key = key.text;
  load.duration_ns = NowNs() - start_ns;
  if (IsEnabled()) {
    load.memory_after_bytes = ResidentBytes();
    load.device_peak_after_bytes = DevicePeakBytes();
    load.weights = WeightsOf(found->module);
    EmitModelLoad(load, location);
  }
  return {found->module, state, key.text};
}

}  // namespace libtrace
