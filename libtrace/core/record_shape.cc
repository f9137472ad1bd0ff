#include "core/record_shape.h"

#include <cstddef>

#include "libtrace/log_format.h"

namespace libtrace::detail {
namespace {

constexpr int kMaxDepth = 64;

// Checks one JSON value; calls `on_member(name, value)` for the members of the outermost object.
template <class OnMember>
class Checker {
 public:
  // `has_gaps`: ids of interned names are not there yet.
  Checker(std::string_view text, bool has_gaps, OnMember on_member)
      : text_(text), has_gaps_(has_gaps), on_member_(on_member) {}

  bool Run() {
    if (!Value(0)) return false;
    SkipSpace();
    return at_ == text_.size();
  }

 private:
  void SkipSpace() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  bool Take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool Literal(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool Value(int depth) {
    SkipSpace();
    if (at_ == text_.size() || depth > kMaxDepth) return false;
    switch (text_[at_]) {
      case '{':
        return Object(depth);
      case '[':
        return Array(depth);
      case '"':
        return String();
      case 't':
        return Literal("true");
      case 'f':
        return Literal("false");
      case 'n':
        return Literal("null");
      case ',':
      case '}':
        return has_gaps_;
      default:
        return Number();
    }
  }

  bool Object(int depth) {
    ++at_;
    SkipSpace();
    if (Take('}')) return true;
    for (;;) {
      SkipSpace();
      const size_t name_at = at_;
      if (!String()) return false;
      const std::string_view name = text_.substr(name_at + 1, at_ - name_at - 2);
      SkipSpace();
      if (!Take(':')) return false;
      SkipSpace();
      const size_t value_at = at_;
      if (!Value(depth + 1)) return false;
      if (depth == 0) on_member_(name, text_.substr(value_at, at_ - value_at));
      SkipSpace();
      if (Take('}')) return true;
      if (!Take(',')) return false;
    }
  }

  bool Array(int depth) {
    ++at_;
    SkipSpace();
    if (Take(']')) return true;
    for (;;) {
      if (!Value(depth + 1)) return false;
      SkipSpace();
      if (Take(']')) return true;
      if (!Take(',')) return false;
    }
  }

  bool String() {
    if (!Take('"')) return false;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\' && !Escape()) return false;
    }
    return false;
  }

  bool Escape() {
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    if (c != 'u') return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    for (int i = 0; i < 4; ++i, ++at_) {
      constexpr std::string_view kHex = "0123456789abcdefABCDEF";
      if (at_ == text_.size() || kHex.find(text_[at_]) == std::string_view::npos) return false;
    }
    return true;
  }

  size_t Digits() {
    const size_t first = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ - first;
  }

  bool Number() {
    Take('-');
    const bool has_zero = at_ < text_.size() && text_[at_] == '0';
    const size_t count = Digits();
    if (count == 0 || (has_zero && count > 1)) return false;
    if (Take('.') && Digits() == 0) return false;
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      if (Digits() == 0) return false;
    }
    return true;
  }

  std::string_view text_;
  bool has_gaps_;
  OnMember on_member_;
  size_t at_ = 0;
};

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
  return Checker(text, false, [](std::string_view, std::string_view) {}).Run();
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
    Checker(json, true, [&](std::string_view name, std::string_view value) {
      for (int i = 0; i < 2; ++i) {
        if (name == shape.members[i]) has[i] = true;
      }
      if (key == format::kArtifact && name == format::kArtifactEncoding && value != "\"json\"" &&
          value != "\"string\"") {
        complaint = "an artifact's encoding must be json or string";
      }
    }).Run();
    if (!has[0] || !has[1]) return shape.complaint;
    return complaint;
  }
  return nullptr;
}

}  // namespace libtrace::detail
