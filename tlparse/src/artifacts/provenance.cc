// Which kernel comes from which lines: the provenance artifacts of all generations
// (torch/_inductor/debug.py), joined with the generated code and the graphs when a graph's segment
// closes.
#include "rows/provenance.h"

#include <unordered_map>
#include <unordered_set>

#include "artifacts/artifact.h"
#include "artifacts/common/graph/code_summary.h"
#include "artifacts/common/graph/graph_tracker.h"
#include "artifacts/common/graph/provenance_builder.h"
#include "artifacts/common/json_members.h"
#include "artifacts/common/text/safe_text.h"
#include "base/json_repair.h"

namespace tlparse {
namespace {

class ProvenanceIngestor final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<KernelRow>();
    tables.Use<KernelNodeRow>();
    tables.Use<NodeMappingRow>();
    tables.Use<KernelSourceRow>();
  }

  // Notes the payload for the graph it belongs to; rows are made when that graph closes.
  Result<void> Ingest(const Record& record, IngestContext& context) override {
    // On a cache hit without provenance in the entry, 2.14 logs the artifacts without payload.
    if (record.payload_id == 0 || record.compile == nullptr) return {};
    if (!checked_.contains(record.payload_id)) {
      RETURN_IF_ERROR(PayloadObject(context));
      checked_.insert(record.payload_id);
    }
    GraphState* graph = context.graphs().CurrentOrOpen(record, context);
    if (graph->provenance_texts == nullptr)
      graph->provenance_texts = std::make_shared<ProvenanceTexts>();
    Part part = PartOf(record.name, *graph);
    part.payload_id = record.payload_id;
    part.text = context.Payload();
    if (!graph->is_open) return GraphClosed(*record.compile, *graph, context);  // it came late
    return {};
  }

  Result<void> GraphClosed(const CompileState& compile, GraphState& graph,
                           IngestContext& context) override {
    if (graph.id == 0 || (graph.code == nullptr && graph.provenance_texts == nullptr)) return {};
    const GraphState& forward = ForwardOf(compile, graph);
    const std::int64_t aot_content_id = graph.direction == Direction::kBackward
                                            ? forward.aot_backward_content_id
                                            : forward.aot_forward_content_id;
    const std::int64_t pre_grad_content_id = forward.pre_grad_content_id;
    const std::int64_t post_grad_content_id =
        graph.post_grad_content_id != 0 ? graph.post_grad_content_id : aot_content_id;
    SequenceHash parts;
    for (const std::int64_t part :
         {graph.code == nullptr ? 0 : graph.code_payload_id, graph.mapping_payload_id,
          graph.stacks_payload_id, graph.kernel_nodes_payload_id, graph.post_to_pre_payload_id,
          pre_grad_content_id, post_grad_content_id}) {
      parts.Add(part);
    }
    const auto [known, is_new] = content_of_.try_emplace(parts.Digest(), 0);
    if (is_new) known->second = Build(graph, pre_grad_content_id, post_grad_content_id, context);
    graph.provenance_content_id = known->second;
    return {};
  }

 private:
  struct Part {
    std::int64_t& payload_id;
    std::string& text;
  };
  static Part PartOf(std::string_view name, GraphState& graph) {
    ProvenanceTexts& texts = *graph.provenance_texts;
    if (name == "inductor_provenance_tracking_node_mappings")
      return {graph.mapping_payload_id, texts.mapping};
    if (name == "inductor_provenance_tracking_kernel_stack_traces")
      return {graph.stacks_payload_id, texts.stacks};
    if (name == "inductor_post_to_pre_grad_nodes")
      return {graph.post_to_pre_payload_id, texts.post_to_pre};
    return {graph.kernel_nodes_payload_id, texts.kernel_nodes};
  }

  // For a backward graph the forward graph of the same AOT id, else the graph itself: before that
  // one's segment the graphs were printed whose nodes its provenance names (a lazy backward comes
  // after other graphs of its compile).
  static const GraphState& ForwardOf(const CompileState& compile, const GraphState& graph) {
    if (graph.direction != Direction::kBackward || graph.aot_id.empty() ||
        compile.graphs.size() > 1024)
      return graph;
    const std::string_view number =
        std::string_view(graph.aot_id).substr(0, graph.aot_id.find('_'));
    for (const std::unique_ptr<GraphState>& other : compile.graphs) {
      if (other->direction == Direction::kForward && other->aot_id.size() > number.size() &&
          other->aot_id.starts_with(number) && other->aot_id[number.size()] == '_') {
        return *other;
      }
    }
    return graph;
  }

  // The content id of the graph's provenance, whose rows are added if it is new; 0 if there is
  // nothing to say.
  std::int64_t Build(const GraphState& graph, std::int64_t pre_grad_content_id,
                     std::int64_t post_grad_content_id, IngestContext& context) {
    ProvenanceBuilder builder(context);
    if (graph.code != nullptr) builder.AddCode(*graph.code);
    if (graph.provenance_texts != nullptr) {
      const ProvenanceTexts& texts = *graph.provenance_texts;
      WithObject(texts.mapping, [&](const auto& object) { builder.AddNodeMappings(object); });
      WithObject(texts.kernel_nodes, [&](const auto& object) { builder.AddKernelNodes(object); });
      WithObject(texts.post_to_pre, [&](const auto& object) { builder.AddPostToPre(object); });
      WithObject(texts.stacks, [&](const auto& object) { builder.AddStackTraces(object); });
    }
    const std::shared_ptr<const GraphNodes> pre_grad =
        context.graphs().nodes().Find(pre_grad_content_id);
    const std::shared_ptr<const GraphNodes> post_grad =
        context.graphs().nodes().Find(post_grad_content_id);
    const Provenance provenance = builder.Finish(pre_grad.get(), post_grad.get());
    if (builder.odd_count() > 0) {
      context.Log(ImportCode::kBadPayload,
                  "provenance of graph " + std::to_string(graph.ordinal) + " of its compile: " +
                      std::to_string(builder.odd_count()) + " members of unexpected type left out");
    }
    if (provenance.empty()) return 0;
    const ContentId content = context.contents().Intern(
        context.rows(), ContentKind::kProvenance, provenance.Hash(),
        graph.code_record_id != 0 ? graph.code_record_id : graph.record_id);
    if (content.is_new) AddRows(content.id, provenance, context);
    return content.id;
  }

  template <typename Visit>
  void WithObject(std::string_view text, Visit&& visit) {
    if (text.empty()) return;
    simdjson::dom::object object;
    if (parser_.parse(text.data(), text.size(), true).get(object) == simdjson::SUCCESS) {
      visit(object);
    } else if (const Result<RepairedJson> repaired = RepairJson(text);
               repaired && parser_.parse(repaired->text).get(object) == simdjson::SUCCESS) {
      visit(object);
    }
  }

  void AddRows(std::int64_t content_id, const Provenance& provenance, IngestContext& context) {
    RowBatch& rows = context.rows();
    const auto id = [](std::int64_t number) {
      return number == 0 ? std::nullopt : std::optional(number);
    };
    std::int64_t ordinal = 0;
    for (const Provenance::Kernel& kernel : provenance.kernels) {
      const std::int64_t kernel_id = context.NextId<KernelRow>();
      rows.Add(KernelRow{.id = kernel_id,
                         .content_id = content_id,
                         .ordinal = ordinal++,
                         .name = kernel.name,
                         .debug_handle = kernel.handle,
                         .code_line = id(kernel.code_line)});
      for (const std::string& node : kernel.post_grad_nodes)
        rows.Add(KernelNodeRow{.kernel_id = kernel_id, .post_grad_node = node});
      for (std::size_t stack = 0; stack < kernel.stacks.size(); ++stack) {
        for (std::size_t frame = 0; frame < kernel.stacks[stack].size(); ++frame) {
          const Provenance::Frame& source = kernel.stacks[stack][frame];
          rows.Add(KernelSourceRow{.kernel_id = kernel_id,
                                   .stack_ordinal = stack,
                                   .frame_ordinal = frame,
                                   .file_id = source.file,
                                   .line = source.line,
                                   .function_id = id(source.function),
                                   .code_id = id(source.code),
                                   .basis = static_cast<std::int64_t>(kernel.basis)});
        }
      }
    }
    for (const auto& [post, pre] : provenance.node_mapping)
      rows.Add(
          NodeMappingRow{.content_id = content_id, .post_grad_node = post, .pre_grad_node = pre});
  }

  simdjson::dom::parser parser_;
  std::unordered_set<std::int64_t> checked_;  // payloads that are JSON objects
  // Content by what it was made of, so that graphs with the same payloads are joined once.
  std::unordered_map<Hash128, std::int64_t, Hash128Hasher> content_of_;
};

}  // namespace

TLPARSE_ARTIFACT(provenance, ProvenanceIngestor,
                 "artifact/inductor_provenance_tracking_node_mappings",
                 "artifact/inductor_provenance_tracking_kernel_stack_traces",
                 "artifact/inductor_triton_kernel_to_post_grad_nodes",
                 "artifact/inductor_generated_kernel_to_post_grad_nodes",
                 "artifact/inductor_post_to_pre_grad_nodes")

}  // namespace tlparse
