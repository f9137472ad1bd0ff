#include "torch/torchscript_records.h"

#include "libtrace/artifacts/graph_dump.h"
#include "libtrace/trace.h"
#include "torch/graph_provenance.h"
#include "torch/kernel_code.h"
#include "torch/model_parts.h"

namespace libtrace {
namespace {

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

// The generated code of all fused groups of a graph, each under the name that provenance calls it
// by.
void EmitKernels(const GraphProvenance& provenance, CallSite location) {
  std::string text;
  for (const auto& [call, group] : provenance.groups()) {
    const std::string code = KernelCode(group);
    if (!code.empty()) text += "// " + call + "\n" + code + "\n";
  }
  if (!text.empty())
    EmitGraphDump("libtrace_torchscript_kernels", "tensorexpr", "", text, location);
}

// Of each part of the graph that autograd differentiates: what libtorch made of it for the forward,
// and its backward, which takes the gradients of the outputs and what the forward keeps.
void EmitJointGraphs(torch::jit::Block* block, int& count, CallSite location) {
  for (torch::jit::Node* node : block->nodes()) {
    if (node->kind() == torch::jit::prim::FallbackGraph) continue;  // the same nodes once more
    if (node->kind() == torch::jit::prim::DifferentiableGraph &&
        node->hasAttribute(torch::jit::attr::ReverseSubgraph)) {
      // As the optimised graph's text calls it.
      const std::string name = "prim::DifferentiableGraph_" + std::to_string(count++);
      EmitGraphDump("libtrace_torchscript_joint", "torchscript", name,
                    "forward:\n" + node->g(torch::jit::attr::Subgraph)->toString() + "backward:\n" +
                        node->g(torch::jit::attr::ReverseSubgraph)->toString(),
                    location);
      continue;
    }
    for (torch::jit::Block* inner : node->blocks()) EmitJointGraphs(inner, count, location);
  }
}

}  // namespace

InputSignature SignatureOf(c10::ArrayRef<c10::IValue> values, size_t first_parameter,
                           const torch::jit::Function& function) {
  InputSignature signature;
  const auto& arguments = function.getSchema().arguments();
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t number = first_parameter + i;
    AppendFacts(
        number < arguments.size() ? arguments[number].name() : "input" + std::to_string(number),
        values[i], signature);
  }
  return signature;
}

CompileDescription DescribeCompile(
    const std::string& model,
    const std::vector<std::pair<CompileId, const InputSignature*>>& earlier,
    const InputSignature& signature, const torch::jit::Graph& graph, std::string& file) {
  CompileDescription description;
  description.function = model;
  for (auto one = earlier.rbegin(); one != earlier.rend(); ++one) {
    description.recompile_reasons.push_back(ToString(one->first) + ": " +
                                            FirstDifference(*one->second, signature));
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

void EmitGraphBefore(Compile& compile, const torch::jit::Graph& graph, size_t earlier_count,
                     size_t guard_count, CallSite location) {
  compile.metrics().cache_size = static_cast<int64_t>(earlier_count);
  compile.metrics().guard_count = static_cast<int64_t>(guard_count);
  if (!IsEnabled()) return;
  EmitGraphDump("libtrace_torchscript_graph", "torchscript", "", graph.toString(), location);
}

void EmitSignature(const std::string& model, const InputSignature& inputs,
                   const c10::IValue& output, CallSite location) {
  InputSignature outputs;
  AppendFacts("output", output, outputs);
  EmitJsonArtifact(
      "libtrace_torchscript_signature", JsonStyle::kOneLine,
      [&](JsonWriter& json) {
        json.BeginObject().Field("model", model);
        WriteFacts(json, "inputs", inputs);
        WriteFacts(json, "outputs", outputs);
        json.EndObject();
      },
      {}, location);
}

OptimizedFacts EmitOptimizedRecords(const torch::jit::Graph& before, torch::jit::Graph& after,
                                    CompilationMetrics* metrics, CallSite location) {
  OptimizedFacts facts;
  if (!IsEnabled()) return facts;
  EmitGraphDump("libtrace_torchscript_optimized", "torchscript", "", after.toString(), location);
  int joint_count = 0;
  EmitJointGraphs(after.block(), joint_count, location);
  if (metrics != nullptr) metrics->graph_input_count = static_cast<int64_t>(before.inputs().size());
  const GraphProvenance provenance(before, after);
  facts.fused_ops = std::make_shared<FusedOps>(provenance.fused_ops());
  if (CurrentProvenanceLevel() == ProvenanceLevel::kOff) return facts;
  if (metrics != nullptr) {
    metrics->graph_node_count = provenance.node_count();
    metrics->graph_op_count = provenance.op_count();
  }
  provenance.result().Emit(location);
  if (CurrentProvenanceLevel() != ProvenanceLevel::kFull) return facts;
  EmitKernels(provenance, location);
  facts.mark_names = provenance.mark_names();
  return facts;
}

}  // namespace libtrace
