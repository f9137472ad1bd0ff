// Printed FX graphs of every stage, from Dynamo's (torch/_dynamo/output_graph.py) over
// AOTAutograd's to Inductor's post-grad graph, exported programs, and fx_graph_runnable, the script
// that repeats a compile, which opens a graph's segment (graph_tracker.h).
#include "rows/graph_text.h"

#include <unordered_set>

#include "artifacts/artifact.h"
#include "artifacts/common/graph/graph_nodes.h"
#include "artifacts/common/graph/graph_tracker.h"
#include "artifacts/common/payload_content.h"
#include "artifacts/common/text/normalize.h"
#include "artifacts/common/text/safe_text.h"
#include "queries/artifacts/graph_text.h"
#include "store/database.h"

namespace tlparse {
namespace {

// What a stage means for the compile.
struct Stage {
  bool is_pre_grad = false;   // its nodes are what "source nodes" and provenance name
  bool is_post_grad = false;  // belongs to a graph: printed behind the split
  bool is_final = false;      // the post-grad graph that code is made from
  bool is_aot_forward = false;
  bool is_aot_backward = false;
};

Stage StageOf(std::string_view name) {
  Stage stage;
  stage.is_aot_forward = name == "aot_forward_graph" || name == "aot_inference_graph";
  stage.is_aot_backward = name == "aot_backward_graph";
  stage.is_pre_grad = name == "dynamo_output_graph" || name == "before_pre_grad_graph" ||
                      name == "inductor_pre_grad_graph";
  stage.is_final = name == "inductor_post_grad_graph" || name == "after_post_grad_graph";
  stage.is_post_grad = stage.is_final || name.ends_with("_post_grad_graph") ||
                       name.ends_with("_post_grad") || name.starts_with("optimus_") ||
                       name.starts_with("cff_") || name.ends_with("_decomp_comms") ||
                       name.starts_with("overlap_scheduling_graph_");
  return stage;
}

bool IsRunnable(std::string_view name) { return name == "fx_graph_runnable"; }

class GraphTexts final : public Ingestor {
 public:
  static void PrepareRecord(const RecordToPrepare& record, std::string& buffer,
                            PreparedRecord& prepared) {
    const bool is_runnable = IsRunnable(record.kind == "artifact" ? record.name : record.kind);
    PrepareContent(is_runnable ? &NormalizeRunnable : &NormalizeGraph, record, buffer, prepared);
  }

  void Prepare(TableSet& tables) override {
    tables.Use<GraphTextRow>();
    tables.Use<GraphNodeRow>();
  }

  Result<void> Load(Database& database) override {
    FOR_EACH_ROW(const ContentWithNodes& row, Query<ContentWithNodes>(database)) {
      has_rows_.insert(row.content_id);
    }
    return {};
  }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    const std::string_view name = record.kind == "artifact" ? record.name : record.kind;
    GraphState* graph = nullptr;
    std::optional<std::int64_t> content_id;
    if (IsRunnable(name)) {
      graph = &context.graphs().Open(record, context);
      content_id = PayloadContent(ContentKind::kText, &NormalizeRunnable, record, context, buffer_);
    } else {
      const Stage stage = StageOf(name);
      if (stage.is_post_grad) graph = context.graphs().Current(record);
      content_id = PayloadContent(ContentKind::kGraph, &NormalizeGraph, record, context, buffer_);
      if (content_id) NoteNodes(stage, graph, *content_id, record, context);
      NoteCompile(name, record);
    }
    context.rows().Add(GraphTextRow{
        .record_id = record.id,
        .graph_id = graph != nullptr && graph->id != 0 ? std::optional(graph->id) : std::nullopt,
        .compile_id = record.compile_row_id(),
        .stage_id = context.Text(name),
        .content_id = content_id});
    return {};
  }

 private:
  // Keeps the nodes of pre-grad and post-grad graphs in memory for provenance; pre-grad nodes become
  // rows as well, once. Only 2.6, which does not tell its version, needs AOTAutograd's graphs as
  // well: later ones log the post-grad graph on a cache hit too.
  void NoteNodes(const Stage& stage, GraphState* graph, std::int64_t content_id,
                 const Record& record, IngestContext& context) {
    const bool is_aot =
        (stage.is_aot_forward || stage.is_aot_backward) && record.process->torch_version.empty();
    if (!stage.is_pre_grad && !stage.is_final && !is_aot) return;
    if (CompileState* compile = record.compile; compile != nullptr) {
      auto& printed = compile->next_families.Get<PrintedGraphs>();
      if (stage.is_pre_grad) printed.pre_grad_content_id = content_id;
      if (is_aot)
        (stage.is_aot_forward ? printed.aot_forward_content_id : printed.aot_backward_content_id) =
            content_id;
    }
    if (stage.is_final && graph != nullptr)
      graph->families.Get<PrintedGraphs>().post_grad_content_id = content_id;
    // The text may have been seen before in a stage whose nodes are not kept (a DDP split prints
    // what becomes a pre-grad graph).
    const bool adds_rows = stage.is_pre_grad && has_rows_.insert(content_id).second;
    if (!adds_rows && context.graphs().nodes().Find(content_id) != nullptr) return;
    ParseGraphNodes(context.Payload(), parsed_);
    sources_.clear();
    for (const SourceLine& source : parsed_.sources) {
      sources_.push_back({context.Text(source.file), source.line,
                          context.OptionalText(source.function).value_or(0),
                          context.OptionalText(source.code).value_or(0),
                          GraphNodes::HashOf(source)});
    }
    context.graphs().nodes().Put(content_id, std::make_shared<const GraphNodes>(parsed_, sources_));
    if (adds_rows) AddNodeRows(content_id, context.rows());
  }

  void AddNodeRows(std::int64_t content_id, RowBatch& rows) {
    const auto id = [](TextId text) { return text == 0 ? std::nullopt : std::optional(text); };
    std::int64_t ordinal = 0;
    for (const ParsedGraph::Node& node : parsed_.nodes) {
      const StaticText name = SafeText(rows, node.name);
      const StaticText operation = SafeText(rows, node.operation);
      if (node.source < 0) {
        rows.Add(GraphNodeRow{
            .content_id = content_id, .ordinal = ordinal++, .name = name, .operation = operation});
        continue;
      }
      const GraphNodes::Source& source = sources_[static_cast<std::size_t>(node.source)];
      rows.Add(GraphNodeRow{.content_id = content_id,
                            .ordinal = ordinal++,
                            .name = name,
                            .operation = operation,
                            .file_id = source.file,
                            .line = source.line,
                            .function_id = id(source.function),
                            .code_id = id(source.code)});
    }
  }

  static void NoteCompile(std::string_view name, const Record& record) {
    if (record.compile == nullptr) return;
    CompileState& compile = *record.compile;
    const bool is_aot =
        name == "aot_joint_graph" || name == "aot_forward_graph" || name == "aot_backward_graph";
    if (name == "aot_inference_graph") {
      compile.next_direction = Direction::kInference;
    } else if (is_aot) {
      // The backward graph is compiled later, or in a separate stretch.
      compile.next_direction = Direction::kForward;
    }
    if (is_aot || name == "aot_inference_graph" || name == "dynamo_output_graph" ||
        name.starts_with("inductor_")) {
      compile.has_output_graph = true;
    }
  }

  std::unordered_set<std::int64_t> has_rows_;  // contents whose nodes are in the database
  std::string buffer_;
  ParsedGraph parsed_;
  std::vector<GraphNodes::Source> sources_;
};

}  // namespace

TLPARSE_ARTIFACT(
    graph_text, GraphTexts, OpensStretch("dynamo_output_graph"), OpensStretch("aot_joint_graph"),
    OpensStretch("aot_forward_graph"), OpensStretch("aot_backward_graph"),
    OpensStretch("aot_inference_graph"), OpensStretch("inductor_pre_grad_graph"),
    OpensStretch("inductor_post_grad_graph"), OpensStretch("optimize_ddp_split_graph"),
    "optimize_ddp_split_child", "compiled_autograd_graph", "exported_program",
    "artifact/compiled_autograd_graph_pre_reordering",
    "artifact/aot_inference_graph_after_hop_passes", "artifact/aot_saved_tensors_hooks_graphs",
    "artifact/before_activation_quantization_fwd_aten_pass",
    "artifact/after_activation_quantization_fwd_aten_pass",
    "artifact/before_activation_quantization_bwd_aten_pass",
    "artifact/after_activation_quantization_bwd_aten_pass", "artifact/min_cut_failed_fx_graph",
    "artifact/fx_graph_runnable", "artifact/before_pre_grad_graph", "artifact/after_pre_grad_graph",
    "artifact/before_joint_graph", "artifact/after_joint_graph", "artifact/before_post_grad_graph",
    "artifact/after_post_grad_graph", "artifact/inductor_post_grad_graph", "artifact/*_pre_grad",
    "artifact/*_post_grad", "artifact/optimus_*", "artifact/cff_*", "artifact/pre_decomp_comms",
    "artifact/post_decomp_comms", "artifact/overlap_scheduling_graph_before",
    "artifact/overlap_scheduling_graph_after")

}  // namespace tlparse
