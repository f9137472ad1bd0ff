// Determines which post-grad nodes each kernel computes, and from which pre-grad nodes and lines of
// the user's code these come: from the provenance artifacts of all versions of
// PyTorch (see ProvenanceTexts), the generated code's comments and the graphs' comments.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "artifacts/artifact.h"
#include "artifacts/common/graph/code_summary.h"
#include "artifacts/common/graph/graph_nodes.h"
#include "enums/provenance.h"

namespace tlparse {

struct Provenance {
  using Frame = GraphNodes::Source;
  struct Stack {
    std::vector<Frame> frames;     // outermost first
    std::int64_t entry_count = 0;  // entries of the log, or nodes, that have it
  };
  struct Kernel {
    std::string name;
    std::optional<std::int64_t> handle;
    std::int64_t code_line = 0;                // 0: not found
    std::vector<std::string> post_grad_nodes;  // sorted, each once
    KernelSourceBasis basis = KernelSourceBasis::kKernelStackTraces;
    std::vector<Stack> stacks;      // each once
    bool is_in_code = false;        // the code calls, comments or defines it
    std::uint64_t KeyHash() const;  // of name and handle
  };
  std::vector<Kernel> kernels;  // in order of the code, then by name
  // Of an earlier graph: without nodes and sources. RemoveLeftovers fills it.
  std::vector<Kernel> leftovers;
  // (post-grad, pre-grad), sorted, each once
  std::vector<std::pair<std::string, std::string>> node_mapping;
  bool empty() const { return kernels.empty() && leftovers.empty() && node_mapping.empty(); }
  // Moves the kernels for which `is_leftover` is true to `leftovers`.
  void RemoveLeftovers(const std::function<bool(const Kernel&)>& is_leftover);
  Hash128 Hash() const;
};

// One use per graph: Add… in any order (the code first, if there is any), then Finish. All texts
// are made valid for SQLite.
class ProvenanceBuilder {
 public:
  explicit ProvenanceBuilder(IngestContext& context) : context_(context) {}

  void AddCode(const CodeSummary& code);
  // inductor_provenance_tracking_node_mappings: {"cppCodeToPost": {kernel: [node]}, "postToPre":
  // {node: [node]}, …}; where one of these is missing, its inverse is used.
  void AddNodeMappings(const simdjson::dom::object& mappings);
  // inductor_triton_kernel_to_post_grad_nodes, inductor_generated_kernel_to_post_grad_nodes:
  // {kernel: [node]}.
  void AddKernelNodes(const simdjson::dom::object& kernels);
  // inductor_post_to_pre_grad_nodes: {post: [{name, from_node: [the same, recursive]}]}: the roots
  // are the pre-grad nodes.
  void AddPostToPre(const simdjson::dom::object& nodes);
  // inductor_provenance_tracking_kernel_stack_traces: {kernel: [traceback text]}.
  void AddStackTraces(const simdjson::dom::object& kernels);

  // `pre_grad` and `post_grad` may be nullptr: the source lines of the graphs' nodes, for kernels
  // without stack traces.
  Provenance Finish(const GraphNodes* pre_grad, const GraphNodes* post_grad);

  // Number of members left out because their type is not that of the format.
  std::int64_t odd_count() const { return odd_count_; }

 private:
  using Kernel = Provenance::Kernel;
  struct Extra {
    std::vector<std::string> source_nodes;          // of the code's comments
    std::vector<std::string> comment_post_nodes;    // of the code's comments
    std::unordered_set<std::uint64_t> stack_texts;  // hashes of those that were added
  };
  std::size_t AddKernel(std::string_view name, std::optional<std::int64_t> handle);
  const std::vector<std::size_t>& KernelsOf(std::string_view key);
  void AddNodes(std::string_view kernel, const simdjson::dom::element& nodes);
  void AddRoots(const std::string& post, const simdjson::dom::object& node, int depth);
  template <typename Visit>
  void ForEachPair(const simdjson::dom::element& map, Visit&& visit);
  void AddSources(std::size_t index, const GraphNodes* pre_grad, const GraphNodes* post_grad);
  std::vector<Provenance::Frame> ParseTraceback(std::string_view text);

  IngestContext& context_;
  Provenance result_;
  std::vector<Extra> extras_;  // by kernel
  std::size_t code_kernels_ = 0;
  std::unordered_map<std::string, std::vector<std::size_t>> by_name_;
  std::vector<std::size_t> found_;
  // (post-grad, pre-grad) by the code's comments
  std::vector<std::pair<std::string, std::string>> code_mapping_;
  std::int64_t odd_count_ = 0;
};

}  // namespace tlparse
