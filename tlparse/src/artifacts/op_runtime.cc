// inductor_runtime_and_tensor_meta: the scheduled ops of a graph, each with an estimated runtime
// and its output tensors (log_runtime_and_tensor_meta in torch/_inductor/debug.py), and
// inductor_tlparse_runtime and inductor_tlparse_tensor_meta, of which it was made in mid-2025:
// {"ops": [{"name", "type", "estimated_runtime_ns", "outputs": [{"shape", "stride", "dtype"}]}]}
//
// The unit. The member is called estimated_runtime_ns, and the scheduler's estimate was in
// nanoseconds when the artifact was made. Since September 2025 (pytorch/pytorch#161405) the
// estimate is in milliseconds, and the name stayed. So 2.10 and later are taken to write
// milliseconds, and where no version is known the estimates of collectives decide: none takes less
// than a microsecond or more than a second.
#include "rows/op_runtime.h"

#include <charconv>
#include <unordered_set>

#include "artifacts/common/graph/graph_tracker.h"
#include "artifacts/common/json_members.h"
#include "artifacts/common/text/safe_text.h"
#include "log/inductor_texts.h"

namespace tlparse {
namespace {

struct Output {
  std::string shape;  // JSON; "" if absent
  std::string stride;
  std::optional<std::string_view> dtype;
};
struct Op {
  std::optional<std::string_view> name;  // null for some fallback kernels
  std::optional<std::string_view> type;
  std::optional<double> estimate;  // as logged
  std::vector<Output> outputs;
};

// (2, 14) of "2.14.1+debian".
std::optional<std::pair<int, int>> ParseVersion(std::string_view version) {
  std::pair<int, int> parsed;
  const char* end = version.data() + version.size();
  const auto [major_end, major_error] = std::from_chars(version.data(), end, parsed.first);
  if (major_error != std::errc() || major_end == end || *major_end != '.') return std::nullopt;
  const auto [minor_end, minor_error] = std::from_chars(major_end + 1, end, parsed.second);
  if (minor_error != std::errc()) return std::nullopt;
  return parsed;
}

bool IsInMilliseconds(const std::vector<Op>& ops, std::string_view torch_version) {
  constexpr double kMicrosecondNs = 1000;  // also: a second in milliseconds
  const std::optional<std::pair<int, int>> version = ParseVersion(torch_version);
  if (version && *version >= std::pair(2, 10)) return true;
  double longest_collective = 0;
  for (const Op& op : ops) {
    if (op.type == "collective" && op.estimate)
      longest_collective = std::max(longest_collective, *op.estimate);
  }
  return longest_collective > 0 && longest_collective < kMicrosecondNs;
}

std::string Json(const JsonMembers& members, std::string_view name) {
  const std::optional<simdjson::dom::array> list = members.Array(name);
  return list ? simdjson::minify(*list) : std::string();
}

std::vector<Output> ReadOutputs(const JsonMembers& op, IngestContext& context) {
  std::vector<Output> outputs;
  const std::optional<simdjson::dom::array> list = op.Array("outputs");
  if (!list) return outputs;
  for (const simdjson::dom::element& element : *list) {
    simdjson::dom::object object;
    if (element.get(object) != simdjson::SUCCESS) {
      context.Log(ImportCode::kBadPayload, "an output is not an object");
      outputs.emplace_back();  // so that the ordinals of the others stay
      continue;
    }
    const JsonMembers output(object, context, ImportCode::kBadPayload);
    outputs.push_back({Json(output, "shape"), Json(output, "stride"), output.String("dtype")});
  }
  return outputs;
}

Result<std::vector<Op>> ReadOps(IngestContext& context) {
  ASSIGN_OR_RETURN(const simdjson::dom::element payload, context.PayloadJson());
  simdjson::dom::array list;
  if (payload.at_key("ops").get(list) != simdjson::SUCCESS &&
      payload.get(list) != simdjson::SUCCESS) {
    return Fail(ErrorCode::kBadJson, "the payload has no list 'ops'");
  }
  std::vector<Op> ops;
  for (const simdjson::dom::element& element : list) {
    Op& op = ops.emplace_back();
    simdjson::dom::object object;
    if (element.get(object) != simdjson::SUCCESS) {
      context.Log(ImportCode::kBadPayload,
                  "op " + std::to_string(ops.size() - 1) + " is not an object");
      continue;
    }
    const JsonMembers members(object, context, ImportCode::kBadPayload);
    op.name = members.String("name");
    op.type = members.String("type");
    op.estimate = members.Number(inductor::kEstimatedRuntime);
    op.outputs = ReadOutputs(members, context);
  }
  return ops;
}

class OpRuntimes final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<OpRow>();
    tables.Use<OpOutputRow>();
    tables.Use<OpEstimateRow>();
    tables.Use<OpListUseRow>();
  }
  Result<void> Ingest(const Record& record, IngestContext& context) override;
  Result<void> ProcessEnded(ProcessState& process, IngestContext&) override {
    logged_.erase(process.id);
    return {};
  }

 private:
  struct Known {
    std::int64_t op_list_id;
    std::optional<std::int64_t> estimates_id;
    bool is_ms;
    bool has_estimate;  // one that is not 0
  };
  Result<Known> ReadPayload(const Record& record, IngestContext& context);
  std::int64_t AddOps(const Record& record, const std::vector<Op>& ops, IngestContext& context);
  std::optional<std::int64_t> AddEstimates(const Record& record, const std::vector<Op>& ops,
                                           bool is_ms, IngestContext& context);

  std::unordered_map<std::int64_t, Known> known_;  // by payload id
  std::unordered_set<std::int64_t> logged_;        // processes with an import_log row for the unit
};

std::int64_t OpRuntimes::AddOps(const Record& record, const std::vector<Op>& ops,
                                IngestContext& context) {
  SequenceHash hash;
  const auto add_optional = [&](std::optional<std::string_view> text) {
    hash.Add(static_cast<std::int64_t>(text.has_value()));
    hash.Add(text.value_or(""));
  };
  for (const Op& op : ops) {
    add_optional(op.name);
    add_optional(op.type);
    hash.Add(static_cast<std::int64_t>(op.outputs.size()));
    for (const Output& output : op.outputs) {
      hash.Add(output.shape);
      hash.Add(output.stride);
      add_optional(output.dtype);
    }
  }
  RowBatch& rows = context.rows();
  const ContentId content =
      context.contents().Intern(rows, ContentKind::kOpList, hash.Digest(), record.id);
  context.contents().LinkPayload(rows, ContentKind::kOpList, record.payload_id, content.id);
  if (!content.is_new) return content.id;
  const auto text = [&](std::optional<std::string_view> value) {
    return value ? std::optional(SafeText(rows, *value)) : std::nullopt;
  };
  const auto json = [&](const std::string& value) {
    return value.empty() ? std::nullopt : text(value);
  };
  for (std::size_t ordinal = 0; ordinal < ops.size(); ++ordinal) {
    const Op& op = ops[ordinal];
    rows.Add(OpRow{.content_id = content.id,
                   .ordinal = ordinal,
                   .name = text(op.name),
                   .type = text(op.type)});
    for (std::size_t index = 0; index < op.outputs.size(); ++index) {
      const Output& output = op.outputs[index];
      rows.Add(OpOutputRow{.content_id = content.id,
                           .op_ordinal = ordinal,
                           .ordinal = index,
                           .shape = json(output.shape),
                           .stride = json(output.stride),
                           .dtype = text(output.dtype)});
    }
  }
  return content.id;
}

std::optional<std::int64_t> OpRuntimes::AddEstimates(const Record& record,
                                                     const std::vector<Op>& ops, bool is_ms,
                                                     IngestContext& context) {
  constexpr double kNsPerMs = 1e6;
  SequenceHash hash;
  bool has_any = false;
  for (const Op& op : ops) {
    has_any |= op.estimate.has_value();
    const double ns = op.estimate.value_or(-1) * (is_ms ? kNsPerMs : 1);
    hash.Add(std::string_view(reinterpret_cast<const char*>(&ns), sizeof ns));
  }
  if (!has_any) return std::nullopt;
  RowBatch& rows = context.rows();
  const ContentId content =
      context.contents().Intern(rows, ContentKind::kOpEstimate, hash.Digest(), record.id);
  context.contents().LinkPayload(rows, ContentKind::kOpEstimate, record.payload_id, content.id);
  for (std::size_t ordinal = 0; content.is_new && ordinal < ops.size(); ++ordinal) {
    const std::optional<double>& estimate = ops[ordinal].estimate;
    if (estimate)
      rows.Add(OpEstimateRow{.content_id = content.id,
                             .ordinal = ordinal,
                             .estimated_ns = *estimate * (is_ms ? kNsPerMs : 1)});
  }
  return content.id;
}

Result<OpRuntimes::Known> OpRuntimes::ReadPayload(const Record& record, IngestContext& context) {
  ASSIGN_OR_RETURN(const std::vector<Op> ops, ReadOps(context));
  Known known{};
  known.is_ms = IsInMilliseconds(ops, record.process->torch_version);
  for (const Op& op : ops) known.has_estimate |= op.estimate.value_or(0) != 0;
  known.op_list_id = AddOps(record, ops, context);
  known.estimates_id = AddEstimates(record, ops, known.is_ms, context);
  return known;
}

Result<void> OpRuntimes::Ingest(const Record& record, IngestContext& context) {
  auto found = known_.find(record.payload_id);
  if (found == known_.end() || record.payload_id == 0) {
    ASSIGN_OR_RETURN(const Known known, ReadPayload(record, context));
    found = known_.insert_or_assign(record.payload_id, known).first;
  }
  const Known& known = found->second;
  const GraphState* graph = context.graphs().Current(record, true);
  context.rows().Add(
      OpListUseRow{.record_id = record.id,
                   .compile_id = record.compile_row_id(),
                   .graph_id = graph != nullptr ? std::optional(graph->id) : std::nullopt,
                   .content_id = known.op_list_id,
                   .estimate_content_id = known.estimates_id,
                   .unit = StaticText{known.is_ms ? "ms" : "ns"}});
  if (known.is_ms && known.has_estimate && logged_.insert(record.process->id).second) {
    context.Log(
        ImportCode::kAssumedUnit,
        "estimated_runtime_ns is taken to hold milliseconds (PyTorch 2.10 and later write those)");
  }
  return {};
}

}  // namespace

TLPARSE_ARTIFACT(op_runtime, OpRuntimes, "artifact/inductor_runtime_and_tensor_meta",
                 "artifact/inductor_tlparse_runtime", "artifact/inductor_tlparse_tensor_meta")

}  // namespace tlparse
