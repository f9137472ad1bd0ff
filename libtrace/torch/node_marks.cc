#include "torch/node_marks.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/pass_manager.h>
#include <torch/csrc/jit/runtime/custom_operator.h>

#include "torch/current_node.h"

namespace libtrace {
namespace {

using torch::jit::Node;

const c10::Symbol& MarkSymbol() {
  static const c10::Symbol symbol = c10::Symbol::fromQualString("libtrace::mark");
  return symbol;
}

thread_local bool is_marking = false;
thread_local int64_t mark_count = 0;
thread_local const std::vector<std::string>* mark_names = nullptr;

void RunMark(torch::jit::Stack& stack) {
  const auto number = static_cast<size_t>(torch::jit::pop(stack).toInt());
  if (mark_names != nullptr && number < mark_names->size()) SetCurrentNode(&(*mark_names)[number]);
}

bool IsMarked(const Node* node) {
  if (node->kind() == torch::jit::prim::FallbackGraph ||
      node->kind() == torch::jit::prim::DifferentiableGraph)
    return false;
  return IsGraphOp(node) || node->hasAttribute(torch::jit::attr::Subgraph);
}

void AddMarks(torch::jit::Graph& graph, torch::jit::Block* block) {
  for (Node* node : block->nodes()) {
    for (torch::jit::Block* inner : node->blocks()) AddMarks(graph, inner);
    if (!IsMarked(node) || MarkOf(node->prev())) continue;
    const torch::jit::WithInsertPoint before(node);
    graph.insertNode(graph.create(MarkSymbol(), {graph.insertConstant(mark_count++)}, 0));
  }
}

void Register() {
  // CONSERVATIVE: stays where it is, and stays at all.
  static const torch::jit::RegisterOperators op({torch::jit::Operator(
      "libtrace::mark(int number) -> ()", RunMark, c10::AliasAnalysisKind::CONSERVATIVE)});
  static const auto pass =
      torch::jit::registerPostPass([](std::shared_ptr<torch::jit::Graph>& graph) {
        if (is_marking) AddMarks(*graph, graph->block());
      });
  static_cast<void>(pass);
}

}  // namespace

bool IsGraphOp(const Node* node) {
  const c10::Symbol kind = node->kind();
  if (kind.is_aten()) return true;
  return !kind.is_prim() && !kind.is_attr() && !kind.is_onnx() && kind != MarkSymbol() &&
         node->maybeSchema() != nullptr;
}

std::optional<size_t> MarkOf(const Node* node) {
  if (node == nullptr || node->kind() != MarkSymbol()) return {};
  const auto number = torch::jit::toIValue(node->input(0));
  if (!number || !number->isInt()) return {};
  return static_cast<size_t>(number->toInt());
}

MarkingScope::MarkingScope(bool is_on) {
  if (is_on) Register();
  is_marking = is_on;
  mark_count = 0;
}
MarkingScope::~MarkingScope() { is_marking = false; }

MarkedRun::MarkedRun(const std::vector<std::string>* names)
    : outer_names_(mark_names), outer_node_(CurrentNode()) {
  mark_names = names;
}
MarkedRun::~MarkedRun() {
  mark_names = outer_names_;
  SetCurrentNode(outer_node_);
}

}  // namespace libtrace
