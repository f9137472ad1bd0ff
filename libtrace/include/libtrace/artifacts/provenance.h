// Provenance: kernel -> graph node -> source line of one compiled graph. PyTorch's shapes
// (torch/_inductor/debug.py, create_mapping_pre_post_grad_nodes, version 2.0):
// `inductor_provenance_tracking_node_mappings` and
// `inductor_provenance_tracking_kernel_stack_traces`. Schemas: the same names.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/call_site.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

// Not thread-safe. When tracing is off nothing is kept; an object that was added to while it was off
// is not emitted, because it would lack edges.
class Provenance {
 public:
  // `<name>:<debug handle>`: the handle numbers the calls of one kernel, 1, 2, … per graph.
  static std::string KernelCall(std::string_view kernel, uint32_t debug_handle);

  // Edges; both directions are written. Repeated edges count once.
  void AddPreToPost(std::string_view pre_grad_node, std::string_view post_grad_node);
  void AddKernelToPost(std::string_view kernel_call, std::string_view post_grad_node);
  // Text like a Python traceback, `  File "m.cc", line 8, in f\n    y = x + 1\n`, see FormatFrame.
  void AddStackTrace(std::string_view kernel_call, std::string_view traceback);
  static std::string FormatFrame(std::string_view file, uint32_t line, std::string_view function,
                                 std::string_view source_text);

  bool empty() const { return pre_to_post_.empty() && kernel_to_post_.empty() && stacks_.empty(); }
  void Clear();
  // Emits both records, each only if it is not empty.
  void Emit(CallSite location = CallSite::Current()) const noexcept;

 private:
  using Edges = std::map<std::string, std::vector<std::string>, std::less<>>;

  bool IsKept() noexcept;

  Edges pre_to_post_, post_to_pre_, kernel_to_post_, post_to_kernel_, stacks_;
  bool has_all_ = true;
};

}  // namespace LIBTRACE_EXPORT
