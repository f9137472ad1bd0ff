// Kernel -> node -> source line of a TorchScript graph.
#pragma once

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/utils/subgraph_utils.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libtrace/artifacts/provenance.h"
#include "libtrace/torch/cost_model.h"
#include "libtrace/torch/op_observer.h"
#include "torch/dtype_name.h"
#include "torch/node_marks.h"

namespace libtrace {

// Where the text was written. A module from an archive has its own text, which remembers what it
// was made from.
inline torch::jit::SourceRange OriginOf(const torch::jit::SourceRange& range) {
  auto origin = range.findSourceRangeThatGenerated();
  return origin ? *origin : range;
}

// What a fused group computes, from the shapes in its graph; empty where one is not known.
inline std::optional<FusedOp> FusedOpOf(const torch::jit::Graph& group) {
  FusedOp fused;
  const auto tensor_of = [](const torch::jit::Value* value) -> std::optional<TensorMeta> {
    const auto type = value->type()->cast<c10::TensorType>();
    if (!type || !type->scalarType() || !type->device()) return {};
    const auto shape = type->sizes().concrete_sizes();
    if (!shape) return {};
    TensorMeta meta{.shape = *shape, .dtype = DtypeName(*type->scalarType())};
    if (const auto stride = type->strides().concrete_sizes()) meta.stride = *stride;
    meta.device = type->device()->str();
    return meta;
  };
  const auto add_bytes = [&](const torch::jit::Value* value, const TensorMeta& meta) {
    double count = 1;
    for (const int64_t size : meta.shape) count *= static_cast<double>(size);
    const auto type = value->type()->expect<c10::TensorType>();
    fused.cost.size_bytes += count * static_cast<double>(c10::elementSize(*type->scalarType()));
    return count;
  };
  for (const torch::jit::Value* input : group.inputs()) {
    if (!input->type()->isSubtypeOf(*c10::TensorType::get())) continue;
    const auto meta = tensor_of(input);
    if (!meta) return {};
    add_bytes(input, *meta);
  }
  for (const torch::jit::Value* output : group.outputs()) {
    const auto meta = tensor_of(output);
    if (!meta) return {};
    add_bytes(output, *meta);
    fused.outputs.push_back(*meta);
  }
  for (const torch::jit::Node* node : group.nodes()) {
    if (!node->kind().is_aten() || node->outputs().size() != 1) continue;
    const auto meta = tensor_of(node->output());
    if (!meta) return {};
    const OpTensor output{{meta->shape.data(), meta->shape.size()}, 0};
    const OpCost cost = CostOf(node->kind().toQualString(), {}, {&output, 1}, false);
    fused.cost.flops += cost.flops;
    fused.cost.is_known &= cost.is_known;
  }
  if (fused.outputs.empty()) return {};
  return fused;
}

// "Pre" nodes are those of the inlined graph, "post" nodes those of the optimised one; a node is
// called like its first output in the dumped text (`h.1`), in a subgraph with the group's name in
// front. A node that the passes kept is recognised by its source range and call stack, which
// they copy. A kernel is an op of the optimised graph or a fused group; every place that
// calls it has a separate debug handle.
class GraphProvenance {
 public:
  GraphProvenance(const torch::jit::Graph& before, torch::jit::Graph& after) {
    CollectPre(before.block());
    Walk(after.block(), "");
  }

  const Provenance& result() const { return result_; }
  int64_t node_count() const { return node_count_; }
  int64_t op_count() const { return op_count_; }  // kernels called by the optimised graph
  // The node after each mark (node_marks.h).
  const std::vector<std::string>& mark_names() const { return mark_names_; }
  // Of the fused groups whose shapes the graph knows, by the name under which they run.
  const FusedOps& fused_ops() const { return fused_ops_; }
  // Kernel call and members of every group that NNC generates code for.
  using Group = std::pair<std::string, std::shared_ptr<torch::jit::Graph>>;
  const std::vector<Group>& groups() const { return groups_; }

  // Where execution was at `node`, outermost call first.
  static std::string StackOf(const torch::jit::Node* node) {
    std::string text;
    std::string function = "forward";
    // By name only: a frozen module's call stacks point to functions of the module it was frozen
    // from, which may be gone.
    for (auto call = node->callstack(); call;
         call = (*call)->callee()) {  // a function, and where it is called
      text += FormatRange((*call)->source_range(), function);
      function = (*call)->function_name();
    }
    return text + FormatRange(node->sourceRange(), function);
  }

 private:
  static std::string FormatRange(const torch::jit::SourceRange& generated,
                                 const std::string& function) {
    const torch::jit::SourceRange range = OriginOf(generated);
    const auto place = range.file_line_col();
    if (!place) return {};
    return Provenance::FormatFrame(std::get<0>(*place), static_cast<uint32_t>(std::get<1>(*place)),
                                   function, range.text().str());
  }
  static std::string NameOf(const torch::jit::Node* node) {
    if (node->outputs().empty()) return node->kind().toUnqualString();
    return node->outputs()[0]->debugName();
  }
  static bool IsOp(const torch::jit::Node* node) { return IsGraphOp(node); }

  void CollectPre(const torch::jit::Block* block) {
    for (const torch::jit::Node* node : block->nodes()) {
      ++node_count_;
      if (IsOp(node)) pre_[node->kind().toQualString() + StackOf(node)].push_back(NameOf(node));
      for (const torch::jit::Block* inner : node->blocks()) CollectPre(inner);
    }
  }

  void AddCall(const std::string& call, const torch::jit::Node* node, const std::string& prefix) {
    const std::string name = prefix + NameOf(node);
    const std::string stack = StackOf(node);
    result_.AddKernelToPost(call, name);
    if (!stack.empty()) result_.AddStackTrace(call, stack);
    const auto pre = pre_.find(node->kind().toQualString() + stack);
    if (pre == pre_.end()) return;
    for (const std::string& pre_name : pre->second) result_.AddPreToPost(pre_name, name);
  }

  // Two groups of one name and different shapes cannot be distinguished when they run.
  void AddFusedOp(const std::string& kernel, const torch::jit::Graph& group) {
    const bool is_first = fused_names_.insert(kernel).second;
    fused_ops_.erase(kernel);
    if (!is_first) return;
    if (auto fused = FusedOpOf(group)) fused_ops_[kernel].push_back(std::move(*fused));
  }

  std::string Call(const std::string& kernel) {
    ++op_count_;
    return Provenance::KernelCall(kernel, ++handle_);
  }

  void Walk(torch::jit::Block* block, const std::string& prefix) {
    for (torch::jit::Node* node : block->nodes()) {
      if (node->kind() == torch::jit::prim::FallbackGraph) continue;  // the same nodes once more
      if (const auto mark = MarkOf(node->prev())) {
        mark_names_.resize(std::max(mark_names_.size(), *mark + 1));
        mark_names_[*mark] = prefix + NameOf(node);
      }
      if (node->hasAttribute(torch::jit::attr::Subgraph)) {
        const auto subgraph = node->g(torch::jit::attr::Subgraph);
        const std::string inner = prefix + NameOf(node) + "/";
        if (node->kind() == torch::jit::prim::DifferentiableGraph) {
          Walk(subgraph->block(), inner);
          continue;
        }
        const std::string kernel =
            torch::jit::SubgraphUtils::generateNameForGraph(subgraph, 40, "fused");
        const std::string call = Call(kernel);
        AddFusedOp(kernel, *subgraph);
        if (node->kind() == torch::jit::prim::TensorExprGroup) groups_.emplace_back(call, subgraph);
        for (const torch::jit::Node* member : subgraph->nodes()) {
          if (IsOp(member)) AddCall(call, member, inner);
        }
        continue;
      }
      if (IsOp(node)) AddCall(Call(node->kind().toQualString()), node, prefix);
      for (torch::jit::Block* inner : node->blocks()) Walk(inner, prefix);
    }
  }

  Provenance result_;
  std::map<std::string, std::vector<std::string>> pre_;
  std::vector<std::string> mark_names_;
  std::vector<Group> groups_;
  FusedOps fused_ops_;
  std::set<std::string> fused_names_;
  int64_t node_count_ = 0, op_count_ = 0;
  uint32_t handle_ = 0;
};

}  // namespace libtrace
