#include "core/record_shape.h"

#include <cstddef>

#include "core/json_reader.h"
#include "libtrace/log_format.h"

namespace libtrace::detail {
namespace {

// Members without which readers reject the record. Other keys of PyTorch's in the list take any
// object.
struct Shape {
  std::string_view key;
  std::string_view members[2];
  const char* complaint;
};
constexpr Shape kShapes[] = {
    {format::kArtifact, {"name", "encoding"}, "an artifact needs the members name and encoding"},
    {format::kDynamoStart, {"stack"}, "dynamo_start needs the member stack"},
    {format::kDynamoOutputGraph, {"sizes"}, "dynamo_output_graph needs the member sizes"},
    {format::kGraphDump, {"name"}, "graph_dump needs the member name"},
    {format::kDumpFile, {"name"}, "dump_file needs the member name"},
    {format::kLink, {"name", "url"}, "link needs the members name and url"},
    {"optimize_ddp_split_child", {"name"}, "optimize_ddp_split_child needs the member name"},
    {"describe_storage", {"id", "describer_id"}, "describe_storage needs id and describer_id"},
    {"describe_tensor", {"id", "describer_id"}, "describe_tensor needs id and describer_id"},
    {"describe_source", {"id", "describer_id"}, "describe_source needs id and describer_id"},
    {format::kInductorOutputCode, {}, nullptr},
    {format::kChromiumEvent, {}, nullptr},
    {"compilation_metrics", {}, nullptr},
    {"bwd_compilation_metrics", {}, nullptr},
    {"compilation_metrics_runtime", {}, nullptr},
    {"bwd_compilation_metrics_runtime", {}, nullptr},
    {"aot_autograd_backward_compilation_metrics", {}, nullptr},
    {"dynamo_guards", {}, nullptr},
    {"dynamo_cpp_guards_str", {}, nullptr},
    {"aot_forward_graph", {}, nullptr},
    {"aot_backward_graph", {}, nullptr},
    {"aot_inference_graph", {}, nullptr},
    {"aot_joint_graph", {}, nullptr},
    {"inductor_pre_grad_graph", {}, nullptr},
    {"inductor_post_grad_graph", {}, nullptr},
    {"optimize_ddp_split_graph", {}, nullptr},
    {"compiled_autograd_graph", {}, nullptr},
    {"symbolic_shape_specialization", {}, nullptr},
    {"guard_added", {}, nullptr},
    {"guard_added_fast", {}, nullptr},
    {"create_symbol", {}, nullptr},
    {"create_unbacked_symbol", {}, nullptr},
    {"expression_created", {}, nullptr},
    {"propagate_real_tensors_provenance", {}, nullptr},
    {"missing_fake_kernel", {}, nullptr},
    {"mismatched_fake_kernel", {}, nullptr},
    {"exported_program", {}, nullptr},
};

}  // namespace

bool IsStrictJson(std::string_view text) noexcept {
  JsonReader reader(text, {.accepts_nan = false});
  return reader.Skip() && reader.IsAtEnd();
}

bool IsKnownKind(std::string_view key) noexcept {
  for (const Shape& shape : kShapes) {
    if (shape.key == key) return true;
  }
  return false;
}

const char* RecordShapeComplaint(std::string_view key, std::string_view json) noexcept {
  for (const Shape& shape : kShapes) {
    if (shape.key != key) continue;
    if (json.empty() || json.front() != '{') return "the value of this record must be an object";
    if (shape.complaint == nullptr) return nullptr;
    bool has[2] = {shape.members[0].empty(), shape.members[1].empty()};
    const char* complaint = nullptr;
    // Ids of interned names are not there yet.
    JsonReader reader(json, {.accepts_nan = false, .has_gaps = true});
    reader.Object([&](std::string_view name) {
      reader.Peek();
      const size_t begin = reader.position();
      if (!reader.Skip()) return false;
      for (int i = 0; i < 2; ++i) {
        if (name == shape.members[i]) has[i] = true;
      }
      const std::string_view value = reader.TextSince(begin);
      if (key == format::kArtifact && name == format::kArtifactEncoding && value != "\"json\"" &&
          value != "\"string\"") {
        complaint = "an artifact's encoding must be json or string";
      }
      return true;
    });
    if (!has[0] || !has[1]) return shape.complaint;
    return complaint;
  }
  return nullptr;
}

}  // namespace libtrace::detail
