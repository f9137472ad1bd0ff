// The order in which compiled graphs ran: graph_execution (the whole order at once, when
// record_and_log_graph_execution_order ends; torch/_inductor/debug.py) and inductor_graph_execution
// (one record per run; nightlies of August 2025).
#include "rows/graph_execution.h"

#include "artifacts/common/json_members.h"
#include "artifacts/common/text/safe_text.h"

namespace tlparse {
namespace {

// The compile id (or the graph's name) of an entry, which is a string, an object that has it, or
// null.
std::optional<std::string_view> Label(const simdjson::dom::element& entry) {
  std::string_view label;
  if (entry.get(label) == simdjson::SUCCESS) return label;
  for (std::string_view member : {"compile_id", "graph"}) {
    if (entry.at_key(member).get(label) == simdjson::SUCCESS) return label;
  }
  return std::nullopt;
}

// Of a process, so far.
struct Executions {
  std::int64_t count = 0;
};

class GraphExecutions final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<GraphExecutionRow>();
    tables.Use<GraphExecutionUseRow>();
  }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    auto known = orders_.find(record.payload_id);
    if (known == orders_.end() || record.payload_id == 0) {
      ASSIGN_OR_RETURN(const Order order, ReadOrder(record, context));
      known = orders_.insert_or_assign(record.payload_id, order).first;
    }
    auto& executions = record.process->families.Get<Executions>();
    context.rows().Add(GraphExecutionUseRow{.record_id = record.id,
                                            .process_id = record.process->id,
                                            .first_ordinal = executions.count,
                                            .content_id = known->second.content_id});
    executions.count += known->second.length;
    return {};
  }

 private:
  struct Order {
    std::int64_t content_id;
    std::int64_t length;
  };

  Result<Order> ReadOrder(const Record& record, IngestContext& context) {
    ASSIGN_OR_RETURN(const simdjson::dom::element payload, context.PayloadJson());
    std::vector<std::optional<std::string_view>> labels;
    simdjson::dom::array entries;
    if (payload.get(entries) == simdjson::SUCCESS ||
        payload.at_key("graph_execution_order").get(entries) == simdjson::SUCCESS) {
      for (const simdjson::dom::element& entry : entries) labels.push_back(Label(entry));
    } else if (const std::optional<std::string_view> label = Label(payload)) {
      labels.push_back(label);
    } else {
      return Fail(ErrorCode::kBadJson, "the payload holds neither graph_execution_order nor graph");
    }
    SequenceHash hash;
    for (const std::optional<std::string_view>& label : labels) {
      hash.Add(static_cast<std::int64_t>(label.has_value()));
      hash.Add(label.value_or(""));
    }
    const ContentId content = context.contents().Intern(
        context.rows(), ContentKind::kExecutionOrder, hash.Digest(), record.id);
    context.contents().LinkPayload(context.rows(), ContentKind::kExecutionOrder, record.payload_id,
                                   content.id);
    for (std::size_t ordinal = 0; content.is_new && ordinal < labels.size(); ++ordinal) {
      context.rows().Add(GraphExecutionRow{
          .content_id = content.id,
          .ordinal = ordinal,
          .label = labels[ordinal] ? std::optional(SafeText(context.rows(), *labels[ordinal]))
                                   : std::nullopt});
    }
    return Order{content.id, static_cast<std::int64_t>(labels.size())};
  }

  std::unordered_map<std::int64_t, Order> orders_;  // by payload id
};

}  // namespace

TLPARSE_ARTIFACT(graph_execution, GraphExecutions, StandsAlone("artifact/graph_execution"),
                 StandsAlone("artifact/inductor_graph_execution"))

}  // namespace tlparse
