// What ran, as libtrace measured it: libtrace_collective_log (the collectives a rank issued),
// libtrace_graph_execution (one execution of a graph), libtrace_measured_runtime (ops) and
// libtrace_cuda_activity (kernels and copies of a GPU). Shapes:
// schemas/json/libtrace/<artifact>.schema.json.
#include "artifacts/common/json_rows.h"

namespace tlparse {
namespace {

class Measurements final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override {
    collective_ = tables.Use("issued_collective_row", 15);
    execution_ = tables.Use("graph_run_row", 6);
    op_ = tables.Use("measured_op_row", 11);
    activity_ = tables.Use("gpu_activity_row", 12);
    gpu_log_ = tables.Use("gpu_activity_log", 4);
  }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    if (record.name == "libtrace_collective_log") return AddCollectives(record, context);
    ASSIGN_OR_RETURN(const simdjson::dom::object object, PayloadObject(context));
    const CellMembers payload(object, context);
    if (record.name == "libtrace_graph_execution") {
      context.rows().Add(execution_, record.id, payload.Int("ordinal"), payload.Text("compile_id"),
                         payload.Text("label"), payload.Int("time_us"), payload.Int("duration_ns"));
    } else if (record.name == "libtrace_measured_runtime") {
      AddOps(record, payload, context);
    } else {
      AddActivities(record, payload, context);
    }
    return {};
  }

 private:
  Result<void> AddCollectives(const Record& record, IngestContext& context) {
    ASSIGN_OR_RETURN(const simdjson::dom::element payload, context.PayloadJson());
    simdjson::dom::array list;
    if (payload.get(list) != simdjson::SUCCESS)
      return Fail(ErrorCode::kBadJson, "the payload is not a list");
    ForEachObject(
        list, "collective", context, [&](std::int64_t ordinal, const CellMembers& issued) {
          context.rows().Add(
              collective_, record.id, ordinal, issued.Text("compile_id"),
              issued.Int("sequence_number"), issued.Text("op"), issued.Text("process_group"),
              issued.Int("group_size"), issued.Text("backend"), issued.ListJson("input_shapes"),
              issued.ListJson("output_shapes"), issued.Text("dtype"), issued.Text("reduce_op"),
              issued.Int("root_rank"), issued.Int("start_us"), issued.Number("duration_ns"));
        });
    return {};
  }

  void AddOps(const Record& record, const CellMembers& payload, IngestContext& context) {
    const std::optional<StaticText> clock = payload.Text("clock");
    ForEachObject(payload, "ops", context, [&](std::int64_t ordinal, const CellMembers& op) {
      context.rows().Add(op_, record.id, ordinal, record.compile_row_id(), clock, op.Text("name"),
                         op.Text("node"), op.Int("count"), op.Number("total_ns"),
                         op.Number("min_ns"), op.Number("max_ns"),
                         op.Number("estimated_runtime_ns"));
    });
  }

  void AddActivities(const Record& record, const CellMembers& payload, IngestContext& context) {
    context.rows().Add(gpu_log_, record.id, payload.Text("cupti"), payload.Int("cupti_version"),
                       payload.Int("lost_count"));
    ForEachObject(
        payload, "activities", context, [&](std::int64_t ordinal, const CellMembers& activity) {
          context.rows().Add(activity_, record.id, ordinal, record.compile_row_id(),
                             activity.Text("kind"), activity.Text("name"), activity.Text("op"),
                             activity.Text("node"), activity.Int("device"), activity.Int("stream"),
                             activity.Int("start_ns"), activity.Int("duration_ns"),
                             activity.Int("size_bytes"));
        });
  }

  TableId collective_ = 0;
  TableId execution_ = 0;
  TableId op_ = 0;
  TableId activity_ = 0;
  TableId gpu_log_ = 0;
};

}  // namespace

TLPARSE_ARTIFACT(measured, Measurements, "artifact/libtrace_collective_log",
                 "artifact/libtrace_graph_execution", "artifact/libtrace_measured_runtime",
                 "artifact/libtrace_cuda_activity")

}  // namespace tlparse
