#include "libtrace/artifacts/collective_log.h"

#include "libtrace/trace.h"

namespace libtrace {
namespace {

void WriteCollective(JsonWriter& json, const IssuedCollective& collective) {
  json.BeginObject()
      .Field("sequence_number", collective.sequence_number)
      .Field("op", collective.op)
      .Field("process_group", collective.process_group)
      .OptionalField("group_size", collective.group_size)
      .OptionalField("backend", collective.backend)
      .Field("input_shapes", collective.input_shapes)
      .Field("output_shapes", collective.output_shapes)
      .Key("dtype");
  collective.dtype.empty() ? json.Null() : json.String(collective.dtype);
  json.OptionalField("reduce_op", collective.reduce_op)
      .OptionalField("root_rank", collective.root_rank)
      .OptionalField("start_us", collective.start_us)
      .OptionalField("duration_ns", collective.duration_ns)
      .OptionalField("compile_id", collective.compile_id)
      .OptionalField("collective_seq_id", collective.collective_seq_id)
      .OptionalField("p2p_seq_id", collective.p2p_seq_id)
      .OptionalField("error", collective.error)
      .EndObject();
}

}  // namespace

void EmitCollectiveLog(ArrayView<IssuedCollective> collectives, CallSite location) noexcept {
  if (collectives.empty()) return;
  EmitOptions options;
  options.expects_compile_id = false;
  EmitJsonArtifact(
      "libtrace_collective_log", JsonStyle::kLinePerElement,
      [&](JsonWriter& json) {
        json.BeginArray();
        for (const IssuedCollective& collective : collectives) WriteCollective(json, collective);
        json.EndArray();
      },
      options, location);
}

void EmitCollectiveState(const CollectiveState& state, CallSite location) noexcept {
  EmitOptions options;
  options.expects_compile_id = false;
  EmitJsonArtifact(
      "libtrace_collective_state", JsonStyle::kOneLine,
      [&](JsonWriter& json) {
        json.BeginObject();
        if (state.unwritten_count) {
          json.Field("unwritten_count", *state.unwritten_count);
        } else {
          json.Field("process_group", state.process_group);
          json.Field("sequence_number", state.sequence_number);
          json.OptionalField("duration_ns", state.duration_ns);
          json.OptionalField("error", state.error);
        }
        json.EndObject();
      },
      options, location);
}

}  // namespace libtrace
