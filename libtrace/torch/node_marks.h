// Marks in an optimised TorchScript graph, which record the node that is being run.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <optional>
#include <string>
#include <vector>

namespace libtrace {

// While it lives, graphs that libtorch optimises on this thread get a mark before every op and
// every fused group, numbered from 0. A mark costs about 60 ns when it runs.
class MarkingScope {
 public:
  explicit MarkingScope(bool is_on);
  ~MarkingScope();
  MarkingScope(const MarkingScope&) = delete;
  MarkingScope& operator=(const MarkingScope&) = delete;
};

// An op of libtorch's or of somebody else's (torchvision::nms): what a kernel may come from.
bool IsGraphOp(const torch::jit::Node* node);

// The number of a mark; empty for every other node.
std::optional<size_t> MarkOf(const torch::jit::Node* node);

// While it lives, marks that run on this thread set the current node (op_observer.h) to
// `names[number]`. Without names it does nothing.
class MarkedRun {
 public:
  explicit MarkedRun(const std::vector<std::string>* names);
  ~MarkedRun();
  MarkedRun(const MarkedRun&) = delete;
  MarkedRun& operator=(const MarkedRun&) = delete;

 private:
  const std::vector<std::string>* outer_names_;
  const std::string* outer_node_;
};

}  // namespace libtrace
