#include "libtrace/torch/torchscript.h"

#include <c10/util/Type.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/lexer.h>
#include <torch/csrc/jit/frontend/parser.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <mutex>
#include <sstream>
#include <typeinfo>

#include "libtrace/artifacts/graph_dump.h"
#include "libtrace/artifacts/model_load.h"
#include "libtrace/cache/cache_key.h"
#include "libtrace/compile.h"
#include "libtrace/torch/op_observer.h"
#include "libtrace/trace.h"
#include "torch/compat.h"
#include "torch/graph_provenance.h"
#include "torch/input_signature.h"
#include "torch/kernel_code.h"
#include "torch/model_parts.h"
#include "torch/node_marks.h"

namespace libtrace {
namespace {

struct Specialization {
  InputSignature signature;
  CompileId compile_id;
  std::unique_ptr<torch::jit::GraphExecutor> executor;
  // Nodes of the optimised graph by mark; empty below ProvenanceLevel::kFull
  std::vector<std::string> mark_names;
  bool is_observed = false;
};

void WriteFacts(JsonWriter& json, std::string_view key, const InputSignature& signature) {
  json.Key(key).BeginArray();
  for (const InputFacts& facts : signature) {
    json.BeginObject().Field("name", facts.name).Field("type", facts.type);
    if (!facts.dtype.empty()) {
      json.Field("dtype", facts.dtype).Field("device", facts.device).Field("shape", facts.shape);
      json.Field("stride", facts.stride).Field("requires_grad", facts.requires_grad);
    }
    json.EndObject();
  }
  json.EndArray();
}

void EmitSignature(const std::string& model, const InputSignature& inputs,
                   const c10::IValue& output) {
  InputSignature outputs;
  AppendFacts("output", output, outputs);
  EmitJsonArtifact("libtrace_torchscript_signature", JsonStyle::kOneLine, [&](JsonWriter& json) {
    json.BeginObject().Field("model", model);
    WriteFacts(json, "inputs", inputs);
    WriteFacts(json, "outputs", outputs);
    json.EndObject();
  });
}

// The generated code of all fused groups of a graph, each under the name that provenance calls it
// by.
void EmitKernels(const GraphProvenance& provenance) {
  std::string text;
  for (const auto& [call, group] : provenance.groups()) {
    const std::string code = KernelCode(group);
    if (!code.empty()) text += "// " + call + "\n" + code + "\n";
  }
  if (!text.empty()) EmitGraphDump("libtrace_torchscript_kernels", "tensorexpr", "", text);
}

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

struct TorchScriptModel::Impl {
  torch::jit::Module module;
  TorchScriptOptions options;
  Frame frame;
  mutable std::mutex mutex;
  std::vector<std::unique_ptr<Specialization>> specializations;  // newest last

  InputSignature SignatureOf(const torch::jit::Stack& stack,
                             const torch::jit::Function& function) const;
  Specialization* Find(const InputSignature& signature) const;
  c10::IValue CompileAndRun(torch::jit::Stack stack, InputSignature signature,
                            torch::jit::Function& function);
  c10::IValue RunSpecialized(Specialization& specialization, torch::jit::Stack stack);
  // `file` keeps the text that the description refers to.
  CompileDescription Describe(const InputSignature& signature, const torch::jit::Graph& graph,
                              std::string& file) const;
  void EmitGraphs(Compile& compile, const torch::jit::Graph& before, torch::jit::Graph& after,
                  Specialization& specialization) const;
};

InputSignature TorchScriptModel::Impl::SignatureOf(const torch::jit::Stack& stack,
                                                   const torch::jit::Function& function) const {
  InputSignature signature;
  const auto& arguments = function.getSchema().arguments();
  for (size_t i = 1; i < stack.size(); ++i) {  // 0 is self
    AppendFacts(i < arguments.size() ? arguments[i].name() : "input" + std::to_string(i), stack[i],
                signature);
  }
  return signature;
}

Specialization* TorchScriptModel::Impl::Find(const InputSignature& signature) const {
  for (auto one = specializations.rbegin(); one != specializations.rend(); ++one) {
    if ((*one)->signature == signature) return one->get();
  }
  return nullptr;
}

CompileDescription TorchScriptModel::Impl::Describe(const InputSignature& signature,
                                                    const torch::jit::Graph& graph,
                                                    std::string& file) const {
  CompileDescription description;
  description.function = options.name;
  for (auto one = specializations.rbegin(); one != specializations.rend(); ++one) {
    description.recompile_reasons.push_back(ToString((*one)->compile_id) + ": " +
                                            FirstDifference((*one)->signature, signature));
  }
  for (const torch::jit::Node* node : graph.nodes()) {
    if (const auto place = OriginOf(node->sourceRange()).file_line_col();
        place && node->kind().is_aten()) {
      file = std::get<0>(*place);
      description.file = file;
      description.line = static_cast<uint32_t>(std::get<1>(*place));
      break;
    }
  }
  return description;
}

void TorchScriptModel::Impl::EmitGraphs(Compile& compile, const torch::jit::Graph& before,
                                        torch::jit::Graph& after,
                                        Specialization& specialization) const {
  if (!IsEnabled()) return;
  EmitGraphDump("libtrace_torchscript_optimized", "torchscript", "", after.toString());
  compile.metrics().graph_input_count = static_cast<int64_t>(before.inputs().size());
  if (CurrentProvenanceLevel() == ProvenanceLevel::kOff) return;
  const GraphProvenance provenance(before, after);
  compile.metrics().graph_node_count = provenance.node_count();
  compile.metrics().graph_op_count = provenance.op_count();
  provenance.result().Emit();
  if (CurrentProvenanceLevel() != ProvenanceLevel::kFull) return;
  specialization.mark_names = provenance.mark_names();
  EmitKernels(provenance);
}

c10::IValue TorchScriptModel::Impl::CompileAndRun(torch::jit::Stack stack, InputSignature signature,
                                                  torch::jit::Function& function) {
  const auto graph = torch::jit::toGraphFunction(function).optimized_graph()->copy();
  std::string file;
  Compile compile(frame, Describe(signature, *graph, file));
  compile.metrics().cache_size = static_cast<int64_t>(specializations.size());
  compile.metrics().guard_count = static_cast<int64_t>(signature.size());
  if (IsEnabled())
    EmitGraphDump("libtrace_torchscript_graph", "torchscript", "", graph->toString());
  auto made = std::make_unique<Specialization>();
  made->signature = signature;
  made->compile_id = compile.id();
  made->executor = std::make_unique<torch::jit::GraphExecutor>(graph->copy(), options.name);
  try {
    // Libtorch specialises from what it saw in one run, whose result is as good as any; the passes
    // then run in getPlanFor.
    torch::jit::Stack result = stack;
    const int64_t start_ns = NowNs();
    made->executor->run(result);
    if (options.executions)
      options.executions->Executed(compile.id(), options.name, NowNs() - start_ns);
    EmitSignature(options.name, signature, result.front());
    try {
      const TimedSpan span("libtrace_torchscript_optimize", options.name);
      const MarkingScope marking(CurrentProvenanceLevel() == ProvenanceLevel::kFull);
      const auto& plan = made->executor->getPlanFor(stack);
      EmitGraphs(compile, *graph, *plan.graph, *made);
    } catch (const std::exception& error) {
      compile.Restart(std::string("optimising failed, the graph runs as it is: ") + error.what());
    }
    specializations.push_back(std::move(made));
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
                                                   torch::jit::Stack stack) {
  std::optional<OpObserver> observer;
  bool is_first = false;
  if (options.observe_ops && IsEnabled()) {
    const std::lock_guard lock(mutex);
    is_first = !std::exchange(specialization.is_observed, true);
  }
  if (is_first) {
    OpObserverOptions observe;
    observe.context = Context{specialization.compile_id, 0, ""};
    observer.emplace(observe);
  }
  std::optional<MarkedRun> marked;
  if (!specialization.mark_names.empty()) marked.emplace(&specialization.mark_names);
  const int64_t start_ns = NowNs();
  specialization.executor->run(stack);
  if (options.executions) {
    options.executions->Executed(specialization.compile_id, options.name, NowNs() - start_ns);
  }
  return stack.front();
}

TorchScriptModel::TorchScriptModel(torch::jit::Module module, TorchScriptOptions options)
    : impl_(std::make_unique<Impl>()) {
  impl_->module = std::move(module);
  impl_->options = std::move(options);
}
TorchScriptModel::~TorchScriptModel() = default;

torch::jit::Module& TorchScriptModel::module() { return impl_->module; }

size_t TorchScriptModel::specialization_count() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->specializations.size();
}

c10::IValue TorchScriptModel::Run(std::vector<c10::IValue> inputs) {
  torch::jit::Function& function = impl_->module.get_method(impl_->options.method).function();
  torch::jit::Stack stack;
  stack.reserve(inputs.size() + 1);
  stack.emplace_back(impl_->module._ivalue());
  for (c10::IValue& input : inputs) stack.push_back(std::move(input));
  function.getSchema().checkAndNormalizeInputs(stack, {});
  InputSignature signature = impl_->SignatureOf(stack, function);
  Specialization* specialization = nullptr;
  {
    const std::lock_guard lock(impl_->mutex);
    specialization = impl_->Find(signature);
    if (specialization == nullptr &&
        impl_->specializations.size() < impl_->options.max_specializations) {
      return impl_->CompileAndRun(std::move(stack), std::move(signature), function);
    }
  }
  if (specialization != nullptr) return impl_->RunSpecialized(*specialization, std::move(stack));
  const int64_t start_ns = NowNs();
  function.run(stack);
  if (impl_->options.executions) {
    impl_->options.executions->Executed({}, impl_->options.name, NowNs() - start_ns);
  }
  return stack.front();
}

namespace {

std::vector<ModelWeight> WeightsOf(const torch::jit::Module& module) {
  std::vector<ModelWeight> weights;
  for (const auto& parameter : module.named_attributes()) {
    if (!parameter.value.isTensor()) continue;
    const at::Tensor& tensor = parameter.value.toTensor();
    if (!tensor.defined()) continue;
    weights.push_back(WeightOf(parameter.name, tensor));
  }
  return weights;
}

CacheKey KeyOf(const ModelRequest& request) {
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

LoadedModule LoadNow(CompileCache& cache, const CacheKey& key,
                     FunctionRef<torch::jit::Module()> build) {
  std::optional<torch::jit::Module> module;
  const auto compile = [&] {
    module = build();
    std::ostringstream archive;
    module->save(archive);
    return CompileOutput{.entry = {.artifact = archive.str()}};
  };
  CacheResult result = cache.GetOrCompile(
      key, [](std::string_view) { return true; }, compile);
  if (!module && result.state == CacheState::kHit) {
    try {
      std::istringstream archive(result.entry.artifact);
      module = torch::jit::load(archive);
    } catch (const std::exception&) {  // of another libtorch, or damaged in a way that its checksum
                                       // does not show
      static_cast<void>(cache.Remove(key.text));
      result.state = CacheState::kMiss;
    }
  }
  if (!module) module = build();
  return {std::move(*module), result.state, result.entry.time_taken_ns,
          result.entry.artifact.size()};
}

}  // namespace

CachedModel LoadOrBuild(CompileCache& cache, const ModelRequest& request,
                        FunctionRef<torch::jit::Module()> build, LoadedModels* loaded) {
  const int64_t start_ns = NowNs();
  ModelLoad load{.model = request.name, .kind = "torchscript"};
  load.memory_before_bytes = ResidentBytes();
  const CacheKey key = KeyOf(request);
  const auto load_now = [&] {
    auto made = std::make_shared<LoadedModule>(LoadNow(cache, key, build));
    // What was frozen into the graph is no weight.
    return LoadedModels::Model{
        made, std::max(SizeOfWeights(WeightsOf(made->module)), made->archive_size_bytes)};
  };
  bool is_held = false;
  const bool may_share = loaded != nullptr && cache.enabled();
  const auto found = std::static_pointer_cast<LoadedModule>(
      may_share ? loaded->GetOrLoad(key.text, load_now, &is_held) : load_now().object);
  const CacheState state = is_held ? CacheState::kHit : found->state;
  if (is_held) EmitMemoryHit(cache.layer(), key, found->time_taken_ns);
  load.state = is_held ? "memory_hit" : state == CacheState::kHit ? "cache_hit" : "compiled";
  load.cache_key = key.text;
  load.duration_ns = NowNs() - start_ns;
  if (IsEnabled()) {
    load.memory_after_bytes = ResidentBytes();
    load.weights = WeightsOf(found->module);
    EmitModelLoad(load);
  }
  return {found->module, state, key.text};
}

}  // namespace libtrace
