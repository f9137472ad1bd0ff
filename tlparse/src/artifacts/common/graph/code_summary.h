// What generated code says about its kernels and collectives: the Python wrapper of
// inductor_output_code (torch/_inductor/codegen/wrapper.py) and the C++ of AOTInductor
// (cpp_wrapper_cpu.py, cpp_wrapper_gpu.py).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tlparse {

// One call of a kernel, in the order of the code; then kernels that are defined but never called.
struct CodeKernel {
  std::string name;  // cpp_fused_add_0, triton_poi_fused_add_0, extern_kernels.mm,
                     // torch.ops.aten.sort.stable
  std::optional<std::int64_t> handle;  // from "# [Provenance debug handles] name:handle"
  std::int64_t line = 0;               // 1-based line of the call; 0: not found
  // "# Topologically Sorted Source Nodes: [a, b], Original ATen: [...]": nodes of the pre-grad
  // graph.
  std::vector<std::string> source_nodes;
  // "# Graph fragment:" above the definition: nodes of the post-grad graph. Only on the first call
  // of a kernel.
  std::vector<std::string> post_grad_nodes;
};

struct CodeCollective {
  std::string op;  // torch.ops._c10d_functional.all_reduce_.default
  bool is_wait = false;
  std::string arguments;   // as in the code, without the first one
  std::string group_name;  // "" if the call names none
  std::string shape;       // JSON list of the first argument's sizes; "" if not in the code
  std::string dtype;       // without "torch."; "" if not in the code
  std::int64_t line = 0;
};

struct CodeSummary {
  std::string aot_id;  // 7_forward; "" if the code has none
  std::vector<CodeKernel> kernels;
  // "# Source node to ATen node mapping:": (pre-grad node, post-grad node).
  std::vector<std::pair<std::string, std::string>> node_mapping;
  std::vector<CodeCollective> collectives;
  // Calls are wrapped in code that times them (TORCH_COMPILE_DEBUG_EXTEND): not all are found.
  bool has_wrapped_calls = false;
  // Kernels, nodes and collectives would take too much memory: the last ones are left out.
  bool is_cut = false;
  std::size_t size_bytes() const;  // roughly
};

// The AOT id in the first lines of a code text; "" if there is none.
std::string_view AotIdOf(std::string_view code);

// Accepts any text; linear in its size. A summary takes at most some 64 MB.
CodeSummary SummarizeCode(std::string_view code);

// "name:7" → ("name", 7); a name without a handle stays whole.
std::pair<std::string_view, std::optional<std::int64_t>> SplitDebugHandle(std::string_view kernel);

// The summary of a graph's generated code, kept with the graph's texts.
struct GraphCode {
  std::shared_ptr<const CodeSummary> summary;
};

}  // namespace tlparse
