#include "libtrace/artifacts/provenance.h"

#include <algorithm>

#include "core/errno_scope.h"
#include "libtrace/trace.h"

namespace libtrace {
namespace {

constexpr double kMappingVersion = 2.0;

template <class Edges>
void AddEdge(Edges& edges, std::string_view from, std::string_view to) {
  auto it = edges.find(from);
  if (it == edges.end()) it = edges.try_emplace(std::string(from)).first;
  if (std::find(it->second.begin(), it->second.end(), to) == it->second.end()) {
    it->second.emplace_back(to);
  }
}

}  // namespace

std::string Provenance::KernelCall(std::string_view kernel, uint32_t debug_handle) {
  const detail::ErrnoScope keeps_errno;
  return std::string(kernel).append(":").append(std::to_string(debug_handle));
}

bool Provenance::IsKept() noexcept {
  if (!IsEnabled()) has_all_ = false;
  return has_all_;
}

void Provenance::AddPreToPost(std::string_view pre_grad_node, std::string_view post_grad_node) {
  if (!IsKept()) return;
  const detail::ErrnoScope keeps_errno;
  AddEdge(pre_to_post_, pre_grad_node, post_grad_node);
  AddEdge(post_to_pre_, post_grad_node, pre_grad_node);
}

void Provenance::AddKernelToPost(std::string_view kernel_call, std::string_view post_grad_node) {
  if (!IsKept()) return;
  const detail::ErrnoScope keeps_errno;
  AddEdge(kernel_to_post_, kernel_call, post_grad_node);
  AddEdge(post_to_kernel_, post_grad_node, kernel_call);
}

void Provenance::AddStackTrace(std::string_view kernel_call, std::string_view traceback) {
  if (!IsKept()) return;
  const detail::ErrnoScope keeps_errno;
  AddEdge(stacks_, kernel_call, traceback);
}

std::string Provenance::FormatFrame(std::string_view file, uint32_t line, std::string_view function,
                                    std::string_view source_text) {
  const detail::ErrnoScope keeps_errno;
  std::string text = "  File \"";
  text.append(file).append("\", line ").append(std::to_string(line)).append(", in ");
  text.append(function).append("\n");
  if (!source_text.empty()) text.append("    ").append(source_text).append("\n");
  return text;
}

void Provenance::Clear() { *this = Provenance(); }

void Provenance::Emit(CallSite location) const noexcept {
  if (!has_all_) return;
  if (!pre_to_post_.empty() || !kernel_to_post_.empty()) {
    EmitJsonArtifact(
        "inductor_provenance_tracking_node_mappings", JsonStyle::kOneLine,
        [&](JsonWriter& json) {
          json.BeginObject()
              .Field("preToPost", pre_to_post_)
              .Field("postToPre", post_to_pre_)
              .Field("cppCodeToPost", kernel_to_post_)
              .Field("postToCppCode", post_to_kernel_)
              .Field("version", kMappingVersion)
              .EndObject();
        },
        {}, location);
  }
  if (!stacks_.empty()) {
    EmitJsonArtifact(
        "inductor_provenance_tracking_kernel_stack_traces", JsonStyle::kOneLine,
        [&](JsonWriter& json) { json.Value(stacks_); }, {}, location);
  }
}

}  // namespace libtrace
