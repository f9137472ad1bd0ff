#include "libtrace/artifacts/graph_dump.h"

#include <charconv>

#include "libtrace/log_format.h"
#include "libtrace/trace.h"

namespace libtrace {
namespace {

// A symbolic size stays text, as in PyTorch.
void WriteSize(JsonWriter& json, const std::string& size) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), number);
  const bool is_number = error == std::errc() && end == size.data() + size.size();
  is_number ? json.Int(number) : json.String(size);
}

}  // namespace

void EmitGraphDump(std::string_view name, std::string_view type, std::string_view filename,
                   std::string_view text, CallSite location) noexcept {
  Emit(
      format::kGraphDump,
      [&](MetadataWriter& json) {
        json.BeginObject().Field("name", name).Field("type", type);
        json.Field("filename", filename).EndObject();
      },
      [&](Payload& payload) { payload.Borrow(text); }, {}, location);
}

void EmitBeforeJointGraph(std::string_view text, CallSite location) noexcept {
  EmitArtifact(
      "before_joint_graph", format::kEncodingString,
      [&](Payload& payload) { payload.Borrow(text); }, {}, location);
}

void EmitAfterJointGraph(std::string_view text, CallSite location) noexcept {
  EmitArtifact(
      "after_joint_graph", format::kEncodingString, [&](Payload& payload) { payload.Borrow(text); },
      {}, location);
}

void EmitOutputGraph(const GraphSizes& sizes, std::string_view text, CallSite location) noexcept {
  Emit(
      format::kDynamoOutputGraph,
      [&](MetadataWriter& json) {
        json.BeginObject().Key("sizes").BeginObject();
        for (const auto& [node, dimensions] : sizes) {
          json.Key(node).BeginArray();
          for (const std::string& size : dimensions) WriteSize(json, size);
          json.EndArray();
        }
        json.EndObject().EndObject();
      },
      [&](Payload& payload) { payload.Borrow(text); }, {}, location);
}

void EmitOutputCode(std::string_view file_path, std::string_view code, CallSite location) noexcept {
  Emit(
      format::kInductorOutputCode,
      [&](MetadataWriter& json) {
        json.BeginObject();
        if (!file_path.empty()) json.Field("filename", file_path).Field("file_path", file_path);
        json.EndObject();
      },
      [&](Payload& payload) { payload.Borrow(code); }, {}, location);
}

}  // namespace libtrace
