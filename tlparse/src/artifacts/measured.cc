// What ran, as libtrace measured it: libtrace_collective_log (the collectives a rank issued),
// libtrace_collective_state (when they were complete),
// libtrace_graph_execution (one execution of a graph), libtrace_measured_runtime (ops) and
// libtrace_cuda_activity (kernels and copies of a GPU). Shapes:
// schemas/json/libtrace/<artifact>.schema.json.
#include "rows/measured.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "artifacts/common/json_rows.h"
#include "log/inductor_texts.h"

namespace tlparse {
namespace {

// The GPU's clock against the epoch, from one or two readings of both.
class GpuClock {
 public:
  void Add(std::optional<std::int64_t> gpu_ns, std::optional<std::int64_t> epoch_ns,
           std::optional<std::int64_t> error_ns) {
    if (!gpu_ns || !epoch_ns) return;
    if (!first_) first_ = {*gpu_ns, *epoch_ns};
    last_ = {*gpu_ns, *epoch_ns};
    if (error_ns) error_ns_ = std::max(error_ns_.value_or(0), *error_ns);
  }
  std::optional<std::int64_t> error_ns() const { return error_ns_; }

  // Two clocks may run apart: linear between the readings.
  std::optional<double> EpochUs(std::optional<std::int64_t> gpu_ns) const {
    if (!first_ || !gpu_ns) return std::nullopt;
    const double since_ns = Difference(*gpu_ns, first_->gpu_ns);
    const double gpu_span_ns = Difference(last_->gpu_ns, first_->gpu_ns);
    const double epoch_span_ns = Difference(last_->epoch_ns, first_->epoch_ns);
    const bool is_plausible = gpu_span_ns > 0 && epoch_span_ns > 0;
    const double rate = is_plausible ? epoch_span_ns / gpu_span_ns : 1.0;
    return static_cast<double>(first_->epoch_ns / 1000) +
           (static_cast<double>(first_->epoch_ns % 1000) + since_ns * rate) / 1000;
  }

 private:
  struct Reading {
    std::int64_t gpu_ns = 0, epoch_ns = 0;
  };
  // Exact: times since the epoch in ns do not fit into a double. Wraps instead of overflowing.
  static double Difference(std::int64_t a, std::int64_t b) {
    return static_cast<double>(
        static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b)));
  }
  std::optional<Reading> first_, last_;
  std::optional<std::int64_t> error_ns_;
};

// Longer ones would not fit the sums of a process.
constexpr std::int64_t kLongest = std::int64_t{1} << 48;

std::optional<std::int64_t> Duration(const CellMembers& members, std::string_view name) {
  const std::optional<std::int64_t> ns = members.Int(name);
  if (!ns || (*ns >= 0 && *ns <= kLongest)) return ns;
  members.Odd(name, "a duration");
  return std::nullopt;
}
std::optional<double> RealDuration(const CellMembers& members, std::string_view name) {
  const std::optional<double> ns = members.Number(name);
  if (!ns || (*ns >= 0 && *ns <= 1e3 * static_cast<double>(kLongest))) return ns;
  members.Odd(name, "a duration");
  return std::nullopt;
}

class Measurements final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<IssuedCollectiveRow>();
    tables.Use<CollectiveStateRow>();
    tables.Use<GraphRunRow>();
    tables.Use<MeasuredOpRow>();
    tables.Use<GpuActivityRow>();
    tables.Use<GpuActivityLogRow>();
  }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    if (record.name == "libtrace_collective_log") return AddCollectives(record, context);
    ASSIGN_OR_RETURN(const simdjson::dom::object object, PayloadObject(context));
    const CellMembers payload(object, context);
    if (record.name == "libtrace_collective_state") {
      context.rows().Add(CollectiveStateRow{.record_id = record.id,
                                            .group_name = payload.Text("process_group"),
                                            .sequence_number = payload.Int("sequence_number"),
                                            .duration_ns = RealDuration(payload, "duration_ns"),
                                            .unwritten_count = payload.Int("unwritten_count"),
                                            .error = payload.Text("error")});
    } else if (record.name == "libtrace_graph_execution") {
      context.rows().Add(GraphRunRow{.record_id = record.id,
                                     .ordinal = payload.Int("ordinal"),
                                     .label = payload.Text("compile_id"),
                                     .graph = payload.Text("label"),
                                     .start_us = payload.Int("time_us"),
                                     .duration_ns = Duration(payload, "duration_ns")});
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
    ForEachObject(list, "collective", context,
                  [&](std::int64_t ordinal, const CellMembers& issued) {
                    context.rows().Add(
                        IssuedCollectiveRow{.record_id = record.id,
                                            .ordinal = ordinal,
                                            .label = issued.Text("compile_id"),
                                            .sequence_number = issued.Int("sequence_number"),
                                            .op = issued.Text("op"),
                                            .group_name = issued.Text("process_group"),
                                            .group_size = issued.Int("group_size"),
                                            .backend = issued.Text("backend"),
                                            .input_shapes = issued.ListJson("input_shapes"),
                                            .output_shapes = issued.ListJson("output_shapes"),
                                            .dtype = issued.Text("dtype"),
                                            .reduce_op = issued.Text("reduce_op"),
                                            .root_rank = issued.Int("root_rank"),
                                            .start_us = issued.Int("start_us"),
                                            .duration_ns = RealDuration(issued, "duration_ns"),
                                            .collective_seq_id = issued.Int("collective_seq_id"),
                                            .p2p_seq_id = issued.Int("p2p_seq_id"),
                                            .error = issued.Text("error")});
                  });
    return {};
  }

  void AddOps(const Record& record, const CellMembers& payload, IngestContext& context) {
    const std::optional<StaticText> clock = payload.Text("clock");
    ForEachObject(payload, "ops", context, [&](std::int64_t ordinal, const CellMembers& op) {
      context.rows().Add(MeasuredOpRow{.record_id = record.id,
                                       .ordinal = ordinal,
                                       .compile_id = record.compile_row_id(),
                                       .clock = clock,
                                       .name = op.Text("name"),
                                       .node = op.Text("node"),
                                       .count = op.Int("count"),
                                       .total_ns = RealDuration(op, "total_ns"),
                                       .min_ns = RealDuration(op, "min_ns"),
                                       .max_ns = RealDuration(op, "max_ns"),
                                       .estimated_ns = op.Number(inductor::kEstimatedRuntime)});
    });
  }

  void AddActivities(const Record& record, const CellMembers& payload, IngestContext& context) {
    GpuClock clock;
    ForEachObject(payload, "clock", context, [&](std::int64_t, const CellMembers& reading) {
      clock.Add(reading.Int("cupti_ns"), reading.Int("epoch_ns"), reading.Int("error_ns"));
    });
    GpuActivityLogRow log{.record_id = record.id,
                          .cupti = payload.Text("cupti"),
                          .cupti_version = payload.Int("cupti_version"),
                          .lost_count = payload.Int("lost_count"),
                          .unlabelled_count = payload.Int("unlabelled_count"),
                          .clock_error_ns = clock.error_ns(),
                          .unsampled_count = payload.Int("unsampled_count"),
                          .foreign_id_count = payload.Int("foreign_id_count"),
                          .foreign_buffer_count = payload.Int("foreign_buffer_count")};
    if (const auto end = payload.Object("ended_early")) {
      const CellMembers ended(*end, context);
      log.end_reason = ended.Text("reason");
      log.last_call_us = clock.EpochUs(ended.Int("last_call_ns"));
      log.noticed_us = clock.EpochUs(ended.Int("noticed_ns"));
    }
    context.rows().Add(log);
    ForEachObject(
        payload, "activities", context, [&](std::int64_t ordinal, const CellMembers& activity) {
          const auto start_ns = activity.Int("start_ns");
          context.rows().Add(GpuActivityRow{.record_id = record.id,
                                            .ordinal = ordinal,
                                            .compile_id = record.compile_row_id(),
                                            .kind = activity.Text("kind"),
                                            .name = activity.Text("name"),
                                            .op = activity.Text("op"),
                                            .node = activity.Text("node"),
                                            .device = activity.Int("device"),
                                            .stream = activity.Int("stream"),
                                            .start_us = clock.EpochUs(start_ns),
                                            .start_ns = start_ns,
                                            .duration_ns = Duration(activity, "duration_ns"),
                                            .size_bytes = activity.Int("size_bytes"),
                                            .source_device = activity.Int("source_device"),
                                            .target_device = activity.Int("target_device"),
                                            .cuda_graph_id = activity.Int("graph_id"),
                                            .cuda_graph_node_id = activity.Int("graph_node_id")});
        });
  }
};

}  // namespace

TLPARSE_ARTIFACT(measured, Measurements, "artifact/libtrace_collective_log",
                 "artifact/libtrace_collective_state", "artifact/libtrace_graph_execution",
                 "artifact/libtrace_measured_runtime", "artifact/libtrace_cuda_activity")

}  // namespace tlparse
