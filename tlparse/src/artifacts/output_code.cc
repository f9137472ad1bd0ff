// Generated code: inductor_output_code (torch/_inductor/graph.py and codecache.py), graph_dump (C++
// of AOTInductor; what vLLM dumps becomes graph_text), inductor_autotune_at_compile_time_code.
// Which collectives it calls is read from it as well: unlike the schedule artifact the code is
// logged for graphs from the cache too.
#include "rows/output_code.h"

#include <list>
#include <unordered_map>

#include "artifacts/artifact.h"
#include "artifacts/common/graph/code_summary.h"
#include "artifacts/common/graph/graph_tracker.h"
#include "artifacts/common/json_members.h"
#include "artifacts/common/payload_content.h"
#include "artifacts/common/text/normalize.h"
#include "artifacts/common/text/safe_text.h"
#include "rows/collective.h"
#include "rows/graph_text.h"

namespace tlparse {
namespace {

constexpr std::size_t kMaxSummaryBytes = 8 << 20;

// What the latest code texts say, by payload: code that many ranks share is read once.
class SummaryCache {
 public:
  std::shared_ptr<const CodeSummary> Find(std::int64_t payload_id) const {
    const auto found = by_payload_.find(payload_id);
    return found == by_payload_.end() ? nullptr : found->second;
  }
  void Put(std::int64_t payload_id, std::shared_ptr<const CodeSummary> summary) {
    bytes_ += summary->size_bytes();
    by_payload_[payload_id] = std::move(summary);
    order_.push_back(payload_id);
    while (bytes_ > kMaxSummaryBytes && order_.size() > 1) {
      const auto oldest = by_payload_.find(order_.front());
      bytes_ -= oldest->second->size_bytes();
      by_payload_.erase(oldest);
      order_.pop_front();
    }
  }

 private:
  std::size_t bytes_ = 0;
  std::list<std::int64_t> order_;
  std::unordered_map<std::int64_t, std::shared_ptr<const CodeSummary>> by_payload_;
};

class OutputCode final : public Ingestor {
 public:
  // Not what graph_dump holds: which text that is, its metadata tell.
  static void PrepareRecord(const RecordToPrepare& record, std::string& buffer,
                            PreparedRecord& prepared) {
    if (record.kind == "graph_dump" || record.payload.empty()) return;
    PrepareContent(&NormalizeCode, record, buffer, prepared);
    if (record.kind == "inductor_output_code")
      prepared.code = std::make_shared<const CodeSummary>(SummarizeCode(record.payload));
  }

  void Prepare(TableSet& tables) override {
    tables.Use<OutputCodeRow>();
    tables.Use<GraphTextRow>();
    tables.Use<CollectiveRow>();
    tables.Use<CollectiveUseRow>();
  }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    const bool is_wrapper = record.kind == "inductor_output_code";
    const std::optional<TextId> path = Path(record, context);
    if (dump_name_.starts_with("vllm_")) {
      AddDumpedGraph(record, context);
      return {};
    }
    std::shared_ptr<const CodeSummary> summary;
    if (record.payload_id != 0 && record.kind != "artifact") summary = Summary(record, context);

    if (summary && summary->is_cut) {
      context.Log(ImportCode::kPayloadTooLarge,
                  "the code names too many kernels and nodes: those behind the first " +
                      std::to_string(summary->kernels.size()) + " kernels are left out");
    }
    GraphState* graph = nullptr;
    if (is_wrapper) {
      graph = &context.graphs().ForOutputCode(
          record, summary ? summary->aot_id : std::string_view(), context);
      if (graph->code_payload_id == record.payload_id)
        graph->texts.Get<GraphCode>().summary = summary;
    } else {
      const bool is_main_dump = record.kind == "graph_dump" && IsMainCode(dump_name_);
      graph = is_main_dump ? context.graphs().CurrentOrOpen(record, context)
                           : context.graphs().Current(record, true);
      if (graph != nullptr && is_main_dump) AttachDump(*graph, summary, record);
    }
    if (record.compile != nullptr && record.kind != "artifact")
      record.compile->has_output_graph = true;
    const std::optional<std::int64_t> graph_id =
        graph != nullptr && graph->id != 0 ? std::optional(graph->id) : std::nullopt;
    context.rows().Add(OutputCodeRow{
        .record_id = record.id,
        .graph_id = graph_id,
        .compile_id = record.compile_row_id(),
        .content_id = PayloadContent(ContentKind::kCode, &NormalizeCode, record, context, buffer_),
        .path_id = path});
    if (summary && !summary->collectives.empty())
      AddCollectives(*summary, graph_id, record, context);
    return {};
  }

 private:
  // The file PyTorch wrote the code to. Sets dump_name_.
  std::optional<TextId> Path(const Record& record, IngestContext& context) {
    dump_name_.clear();
    if (record.kind == "artifact") return std::nullopt;
    const Result<simdjson::dom::object> metadata = MetadataObject(context);
    if (!metadata) {
      context.Log(ImportCode::kBadMetadata, metadata.error().message);
      return std::nullopt;
    }
    const JsonMembers members(*metadata, context, ImportCode::kBadMetadata);
    if (record.kind == "graph_dump") dump_name_ = members.String("name").value_or("");
    std::optional<std::string_view> path = members.String("file_path");
    if (!path) path = members.String("filename");
    return path ? context.OptionalText(*path) : std::nullopt;
  }

  // vLLM dumps no code: the graph that it splits, the pieces, the graph after each of its passes,
  // and the passes' patterns.
  void AddDumpedGraph(const Record& record, IngestContext& context) {
    const bool is_post_grad = dump_name_.starts_with("vllm_post_grad.");
    const GraphState* graph = is_post_grad ? context.graphs().Current(record) : nullptr;
    context.rows().Add(GraphTextRow{
        .record_id = record.id,
        .graph_id = graph != nullptr ? std::optional(graph->id) : std::nullopt,
        .compile_id = record.compile_row_id(),
        .stage_id = context.Text(dump_name_),
        .content_id =
            PayloadContent(ContentKind::kGraph, &NormalizeGraph, record, context, buffer_)});
  }

  // AOTInductor dumps the wrapper, which calls the kernels, and files that only define them.
  static bool IsMainCode(std::string_view dump) {
    return dump == "inductor_aot_code" || dump == "inductor_aot_wrapper_code";
  }
  static void AttachDump(GraphState& graph, std::shared_ptr<const CodeSummary> summary,
                         const Record& record) {
    if (graph.code_record_id != 0) return;
    graph.code_record_id = record.id;
    graph.code_payload_id = record.payload_id;
    graph.texts.Get<GraphCode>().summary = std::move(summary);
  }

  std::shared_ptr<const CodeSummary> Summary(const Record& record, IngestContext& context) {
    std::shared_ptr<const CodeSummary> summary = summaries_.Find(record.payload_id);
    if (summary == nullptr) {
      summary = context.prepared().code;
      if (summary == nullptr)
        summary = std::make_shared<const CodeSummary>(SummarizeCode(context.Payload()));
      summaries_.Put(record.payload_id, summary);
    }
    return summary;
  }

  void AddCollectives(const CodeSummary& summary, std::optional<std::int64_t> graph_id,
                      const Record& record, IngestContext& context) {
    RowBatch& rows = context.rows();
    std::optional<std::int64_t> content_id =
        context.contents().OfPayload(ContentKind::kSchedule, record.payload_id);
    if (!content_id) {
      SequenceHash hash;
      hash.Add("code");  // distinguishes it from inductor_collective_schedule (collective.cc)
      for (const CodeCollective& collective : summary.collectives) {
        for (const std::string_view part :
             {std::string_view(collective.op), std::string_view(collective.arguments),
              std::string_view(collective.shape), std::string_view(collective.dtype)}) {
          hash.Add(part);
        }
      }
      const ContentId content =
          context.contents().Intern(rows, ContentKind::kSchedule, hash.Digest(), record.id);
      context.contents().LinkPayload(rows, ContentKind::kSchedule, record.payload_id, content.id);
      if (content.is_new) AddCollectiveRows(content.id, summary, rows);
      content_id = content.id;
    }
    rows.Add(CollectiveUseRow{.record_id = record.id,
                              .source = CollectiveSource::kCode,
                              .compile_id = record.compile_row_id(),
                              .graph_id = graph_id,
                              .content_id = *content_id});
  }

  void AddCollectiveRows(std::int64_t content_id, const CodeSummary& summary, RowBatch& rows) {
    const auto text = [&rows](std::string_view value) {
      return value.empty() ? std::nullopt : std::optional<StaticText>(SafeText(rows, value));
    };
    std::int64_t ordinal = 0;
    for (const CodeCollective& collective : summary.collectives) {
      rows.Add(CollectiveRow{.content_id = content_id,
                             .ordinal = ordinal++,
                             .op = text(collective.op),
                             .is_wait = collective.is_wait,
                             .arguments = text(collective.arguments),
                             .group_name = text(collective.group_name),
                             .shape = text(collective.shape),
                             .dtype = text(collective.dtype),
                             .code_line = collective.line});
    }
  }

  std::string buffer_;
  std::string dump_name_;
  SummaryCache summaries_;
};

}  // namespace

TLPARSE_ARTIFACT(output_code, OutputCode, OpensStretch("inductor_output_code"), "graph_dump",
                 "artifact/inductor_autotune_at_compile_time_code")

}  // namespace tlparse
