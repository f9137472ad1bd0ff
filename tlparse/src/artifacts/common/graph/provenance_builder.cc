#include "artifacts/common/graph/provenance_builder.h"

#include <algorithm>
#include <unordered_set>

#include "artifacts/common/text/python_traceback.h"
#include "base/utf8.h"

namespace tlparse {

namespace {

// Limits against hostile input, far above what a graph has: without a handle a name means all
// calls of the kernel, and a kernel's nodes and their sources multiply.
constexpr std::size_t kMaxCallsOfName = 256;
constexpr std::size_t kMaxStacks = 1024;
constexpr std::size_t kMaxSourcesOfNode = 256;

std::string Clean(std::string_view text) {
  return IsTextSafe(text) ? std::string(text) : SanitizeUtf8(text);
}

template <typename T>
void SortUnique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

bool IsCaretLine(std::string_view line) {
  return line.find_first_not_of(" ~^") == std::string_view::npos;
}

void AddStack(Provenance::Kernel& kernel, std::vector<Provenance::Frame> frames) {
  if (frames.empty()) return;
  const auto same =
      std::find_if(kernel.stacks.begin(), kernel.stacks.end(),
                   [&](const Provenance::Stack& stack) { return stack.frames == frames; });
  if (same != kernel.stacks.end()) {
    ++same->entry_count;
  } else if (kernel.stacks.size() < kMaxStacks) {
    kernel.stacks.push_back({std::move(frames), 1});
  }
}

// The line of which a node of a backward graph is the backward. The code's comments name such nodes
// by their own names, forward nodes that are computed again by those of the pre-grad graph: a name
// that both graphs have is unknown if it may be one of the latter.
const GraphNodes::Source* BackwardLine(const GraphNodes* pre_grad, const GraphNodes* post_grad,
                                       const std::string& node, bool& is_unknown) {
  is_unknown = false;
  const GraphNodes::Source* own = post_grad == nullptr ? nullptr : post_grad->FindBackward(node);
  const GraphNodes::Source* pre = pre_grad == nullptr ? nullptr : pre_grad->Find(node);
  if (own == nullptr || pre == nullptr || *own == *pre) return own;
  is_unknown = post_grad->HasForward(*pre);
  return is_unknown ? nullptr : own;
}

}  // namespace

Hash128 Provenance::Hash() const {
  SequenceHash hash;
  for (const Kernel& kernel : kernels) {
    hash.Add(kernel.name);
    hash.Add(kernel.handle.value_or(-1));
    hash.Add(kernel.code_line);
    hash.Add(static_cast<std::int64_t>(kernel.post_grad_nodes.size()));
    for (const std::string& node : kernel.post_grad_nodes) hash.Add(node);
    hash.Add(static_cast<std::int64_t>(kernel.basis));
    hash.Add(static_cast<std::int64_t>(kernel.stacks.size()));
    for (const Stack& stack : kernel.stacks) {
      hash.Add(stack.entry_count);
      hash.Add(static_cast<std::int64_t>(stack.frames.size()));
      for (const Frame& frame : stack.frames) hash.Add(static_cast<std::int64_t>(frame.hash));
    }
  }
  for (const auto& [post, pre] : node_mapping) {
    hash.Add(post);
    hash.Add(pre);
  }
  for (const Kernel& kernel : leftovers) hash.Add(static_cast<std::int64_t>(kernel.KeyHash()));
  return hash.Digest();
}

std::uint64_t Provenance::Kernel::KeyHash() const {
  return HashBytes(handle ? name + ":" + std::to_string(*handle) : name).low;
}

void Provenance::RemoveLeftovers(const std::function<bool(const Kernel&)>& is_leftover) {
  const auto first = std::stable_partition(
      kernels.begin(), kernels.end(), [&](const Kernel& kernel) { return !is_leftover(kernel); });
  for (auto kernel = first; kernel != kernels.end(); ++kernel) {
    Kernel& leftover = leftovers.emplace_back();
    leftover.name = std::move(kernel->name);
    leftover.handle = kernel->handle;
  }
  kernels.erase(first, kernels.end());
}

std::size_t ProvenanceBuilder::AddKernel(std::string_view name,
                                         std::optional<std::int64_t> handle) {
  const std::size_t index = result_.kernels.size();
  Kernel kernel;
  kernel.name = Clean(name);
  kernel.handle = handle;
  by_name_[std::string(name)].push_back(index);
  result_.kernels.push_back(std::move(kernel));
  extras_.emplace_back();
  return index;
}

void ProvenanceBuilder::AddCode(const CodeSummary& code) {
  for (const CodeKernel& called : code.kernels) {
    const std::size_t index = AddKernel(called.name, called.handle);
    result_.kernels[index].code_line = called.line;
    extras_[index] = {called.source_nodes, called.post_grad_nodes, {}};
  }
  for (const auto& [pre, post] : code.node_mapping)
    code_mapping_.emplace_back(Clean(post), Clean(pre));
  code_kernels_ = result_.kernels.size();
}

// The kernels that a key of an artifact means: the one with that handle, or all calls of that name.
const std::vector<std::size_t>& ProvenanceBuilder::KernelsOf(std::string_view key) {
  const auto [name, handle] = SplitDebugHandle(key);
  found_.clear();
  if (const auto same_name = by_name_.find(std::string(name)); same_name != by_name_.end()) {
    for (const std::size_t index : same_name->second) {
      if (handle && result_.kernels[index].handle != handle) continue;
      found_.push_back(index);
      if (found_.size() == kMaxCallsOfName) break;
    }
  }
  if (found_.empty()) found_.push_back(AddKernel(name, handle));
  return found_;
}

void ProvenanceBuilder::AddNodes(std::string_view kernel, const simdjson::dom::element& nodes) {
  simdjson::dom::array list;
  if (nodes.get(list) != simdjson::SUCCESS) {
    ++odd_count_;
    return;
  }
  for (const std::size_t index : KernelsOf(kernel)) {
    for (const simdjson::dom::element node : list) {
      std::string_view name;
      if (node.get(name) == simdjson::SUCCESS) {
        result_.kernels[index].post_grad_nodes.push_back(Clean(name));
      } else {
        ++odd_count_;
      }
    }
  }
}

void ProvenanceBuilder::AddKernelNodes(const simdjson::dom::object& kernels) {
  for (const auto [key, nodes] : kernels) AddNodes(key, nodes);
}

// {a: [b, c]} → (a, b), (a, c)
template <typename Visit>
void ProvenanceBuilder::ForEachPair(const simdjson::dom::element& map, Visit&& visit) {
  simdjson::dom::object object;
  if (map.get(object) != simdjson::SUCCESS) {
    ++odd_count_;
    return;
  }
  for (const auto [key, value] : object) {
    simdjson::dom::array list;
    if (value.get(list) != simdjson::SUCCESS) {
      ++odd_count_;
      continue;
    }
    for (const simdjson::dom::element item : list) {
      std::string_view name;
      if (item.get(name) == simdjson::SUCCESS) {
        visit(key, name);
      } else {
        ++odd_count_;
      }
    }
  }
}

void ProvenanceBuilder::AddNodeMappings(const simdjson::dom::object& mappings) {
  simdjson::dom::element member;
  simdjson::dom::object kernels;
  if (mappings.at_key("cppCodeToPost").get(member) == simdjson::SUCCESS) {
    if (member.get(kernels) == simdjson::SUCCESS) {
      AddKernelNodes(kernels);
    } else {
      ++odd_count_;
    }
  } else if (mappings.at_key("postToCppCode").get(member) == simdjson::SUCCESS) {
    ForEachPair(member, [this](std::string_view node, std::string_view kernel) {
      for (const std::size_t index : KernelsOf(kernel))
        result_.kernels[index].post_grad_nodes.push_back(Clean(node));
    });
  }
  if (mappings.at_key("postToPre").get(member) == simdjson::SUCCESS) {
    ForEachPair(member, [this](std::string_view post, std::string_view pre) {
      result_.node_mapping.emplace_back(Clean(post), Clean(pre));
    });
  } else if (mappings.at_key("preToPost").get(member) == simdjson::SUCCESS) {
    ForEachPair(member, [this](std::string_view pre, std::string_view post) {
      result_.node_mapping.emplace_back(Clean(post), Clean(pre));
    });
  }
}

void ProvenanceBuilder::AddPostToPre(const simdjson::dom::object& nodes) {
  for (const auto [post, list] : nodes) {
    simdjson::dom::array origins;
    if (list.get(origins) != simdjson::SUCCESS) {
      ++odd_count_;
      continue;
    }
    const std::string name = Clean(post);
    for (const simdjson::dom::element origin : origins) {
      simdjson::dom::object node;
      if (origin.get(node) == simdjson::SUCCESS) {
        AddRoots(name, node, 0);
      } else {
        ++odd_count_;
      }
    }
  }
}

// A node without from_node is a root: it was there before any pass. simdjson bounds the depth of
// documents at 1,024.
void ProvenanceBuilder::AddRoots(const std::string& post, const simdjson::dom::object& node,
                                 int depth) {
  simdjson::dom::array origins;
  bool has_origin = false;
  if (depth < 1024 && node.at_key("from_node").get(origins) == simdjson::SUCCESS) {
    for (const simdjson::dom::element origin : origins) {
      simdjson::dom::object inner;
      if (origin.get(inner) != simdjson::SUCCESS) continue;
      has_origin = true;
      AddRoots(post, inner, depth + 1);
    }
  }
  if (has_origin) return;
  std::string_view name;
  if (node.at_key("name").get(name) == simdjson::SUCCESS) {
    result_.node_mapping.emplace_back(post, Clean(name));
  } else {
    ++odd_count_;
  }
}

void ProvenanceBuilder::AddStackTraces(const simdjson::dom::object& kernels) {
  for (const auto [key, value] : kernels) {
    simdjson::dom::array texts;
    if (value.get(texts) != simdjson::SUCCESS) {
      ++odd_count_;
      continue;
    }
    const std::vector<std::size_t>& indices = KernelsOf(key);
    for (const simdjson::dom::element element : texts) {
      std::string_view text;
      if (element.get(text) != simdjson::SUCCESS) {
        ++odd_count_;
        continue;
      }
      const std::vector<Provenance::Frame> stack = ParseTraceback(text);
      const std::uint64_t text_hash = HashBytes(text).low;
      for (const std::size_t index : indices) {
        if (extras_[index].stack_texts.insert(text_hash).second)
          AddStack(result_.kernels[index], stack);
      }
    }
  }
}

// Lines `File "m.py", line 8, in f`, each followed by its code and, on recent Pythons, carets.
std::vector<Provenance::Frame> ProvenanceBuilder::ParseTraceback(std::string_view text) {
  std::vector<SourceLine> lines;
  while (!text.empty()) {
    const std::string_view line = NextLine(text);
    if (const std::optional<PythonFrame> frame = ParseFrameLine(line)) {
      lines.push_back({frame->file, frame->line, frame->function, {}});
    } else if (!lines.empty() && lines.back().code.empty() && !IsCaretLine(line)) {
      lines.back().code = TrimEnd(line.substr(line.find_first_not_of(' ')));
    }
  }
  std::vector<Provenance::Frame> frames;
  for (const SourceLine& line : lines) {
    frames.push_back({context_.Text(line.file), line.line,
                      context_.OptionalText(line.function).value_or(0),
                      context_.OptionalText(line.code).value_or(0), GraphNodes::HashOf(line)});
  }
  return frames;
}

// For a kernel without stack traces: the lines that the graphs' comments name above its nodes.
void ProvenanceBuilder::AddSources(std::size_t index, const GraphNodes* pre_grad,
                                   const GraphNodes* post_grad) {
  Kernel& kernel = result_.kernels[index];
  std::unordered_set<std::uint64_t> of_node;  // its lines so far: each counts once for a node
  const auto add_line = [&](const GraphNodes::Source* source) {
    if (source != nullptr && of_node.insert(source->hash).second) AddStack(kernel, {*source});
    return source != nullptr;
  };
  const auto add = [&](const GraphNodes* graph, std::string_view node) {
    return add_line(graph == nullptr ? nullptr : graph->Find(node));
  };
  for (const std::string& post : kernel.post_grad_nodes) {
    of_node.clear();
    // A mapping of a backward node to a node of the same name refers to the backward node itself,
    // not to a pre-grad node.
    if (post_grad != nullptr && add_line(post_grad->FindBackward(post))) continue;
    auto mapped = std::lower_bound(result_.node_mapping.begin(), result_.node_mapping.end(),
                                   std::pair(post, std::string()));
    bool is_found = false;
    for (std::size_t count = 0;
         mapped != result_.node_mapping.end() && mapped->first == post && count < kMaxSourcesOfNode;
         ++count) {
      is_found |= add(pre_grad, mapped->second);
      ++mapped;
    }
    if (!is_found) add(post_grad, post);
  }
  if (!kernel.stacks.empty()) {
    kernel.basis = extras_[index].comment_post_nodes == kernel.post_grad_nodes
                       ? KernelSourceBasis::kCodeComments
                       : KernelSourceBasis::kNodeMappings;
    return;
  }
  kernel.basis = KernelSourceBasis::kCodeComments;
  for (const std::string& node : extras_[index].source_nodes) {
    of_node.clear();
    bool is_unknown = false;
    if (!add_line(BackwardLine(pre_grad, post_grad, node, is_unknown)) && !is_unknown)
      add(pre_grad, node);
  }
}

Provenance ProvenanceBuilder::Finish(const GraphNodes* pre_grad, const GraphNodes* post_grad) {
  std::unordered_set<std::string> called_without_handle;
  for (std::size_t index = 0; index < code_kernels_; ++index) {
    const Kernel& kernel = result_.kernels[index];
    if (!kernel.handle) called_without_handle.insert(kernel.name);
  }
  for (std::size_t index = 0; index < result_.kernels.size(); ++index) {
    Kernel& kernel = result_.kernels[index];
    kernel.is_in_code = index < code_kernels_ || called_without_handle.contains(kernel.name);
  }
  // Mappings of the artifacts are complete; those of comments are for logs without.
  if (result_.node_mapping.empty()) result_.node_mapping = std::move(code_mapping_);
  SortUnique(result_.node_mapping);
  for (std::size_t index = 0; index < result_.kernels.size(); ++index) {
    Kernel& kernel = result_.kernels[index];
    SortUnique(kernel.post_grad_nodes);
    if (!kernel.post_grad_nodes.empty()) continue;
    for (std::string& node : extras_[index].comment_post_nodes) node = Clean(node);
    SortUnique(extras_[index].comment_post_nodes);
    kernel.post_grad_nodes = extras_[index].comment_post_nodes;
  }
  for (std::size_t index = 0; index < result_.kernels.size(); ++index) {
    if (result_.kernels[index].stacks.empty()) AddSources(index, pre_grad, post_grad);
  }
  std::stable_sort(result_.kernels.begin() + static_cast<std::ptrdiff_t>(code_kernels_),
                   result_.kernels.end(), [](const Kernel& a, const Kernel& b) {
                     return std::pair(a.name, a.handle) < std::pair(b.name, b.handle);
                   });
  return std::move(result_);
}

}  // namespace tlparse
