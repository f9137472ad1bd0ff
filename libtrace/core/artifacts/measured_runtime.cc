#include "libtrace/artifacts/measured_runtime.h"

#include "libtrace/trace.h"

namespace libtrace {

void EmitMeasuredRuntime(ArrayView<MeasuredOp> ops, std::string_view clock,
                         CallSite location) noexcept {
  if (ops.empty()) return;
  EmitOptions options;
  options.expects_compile_id = false;
  EmitJsonArtifact(
      "libtrace_measured_runtime", JsonStyle::kOneLine,
      [&](JsonWriter& json) {
        json.BeginObject().Field("clock", clock).Key("ops").BeginArray();
        for (const MeasuredOp& op : ops) {
          json.BeginObject().Field("name", op.name).OptionalField("node", op.node);
          json.Field("count", op.count).Field("total_ns", op.total_ns);
          json.Field("min_ns", op.min_ns).Field("max_ns", op.max_ns);
          json.OptionalField("estimated_runtime_ns", op.estimated_runtime_ns).EndObject();
        }
        json.EndArray().EndObject();
      },
      options, location);
}

}  // namespace libtrace
