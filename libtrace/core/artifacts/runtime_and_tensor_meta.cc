#include "libtrace/artifacts/runtime_and_tensor_meta.h"

#include "libtrace/trace.h"

namespace libtrace {
namespace {

void WriteOutput(JsonWriter& json, const TensorMeta& tensor) {
  json.BeginObject().Field("shape", tensor.shape).Field("stride", tensor.stride);
  json.Field("dtype", tensor.dtype).OptionalField("device", tensor.device).EndObject();
}

}  // namespace

void EmitRuntimeAndTensorMeta(ArrayView<OpRuntime> ops, CallSite location) noexcept {
  if (ops.empty()) return;
  EmitJsonArtifact(
      "inductor_runtime_and_tensor_meta", JsonStyle::kOneLine,
      [&](JsonWriter& json) {
        json.BeginObject().Key("ops").BeginArray();
        for (const OpRuntime& op : ops) {
          json.BeginObject().Field("name", op.name);
          json.Field("type", op.is_collective ? "collective" : "compute");
          json.Field("estimated_runtime_ns", op.estimated_runtime_ns);
          json.Key("outputs").BeginArray();
          for (const TensorMeta& tensor : op.outputs) WriteOutput(json, tensor);
          json.EndArray().EndObject();
        }
        json.EndArray().EndObject();
      },
      {}, location);
}

}  // namespace libtrace
