// Which kernel comes from which lines: the provenance artifacts of all generations
// (torch/_inductor/debug.py), joined with the generated code and the graphs when a graph's segment
// closes.
#include "rows/provenance.h"

#include <algorithm>
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

// The JSON texts of a graph's provenance artifacts and the ids of their payloads; null and 0 for
// those it does not have. Graphs with the same payload share its text.
struct ProvenanceTexts {
  using Text = std::shared_ptr<const std::string>;
  struct Part {
    std::int64_t payload_id = 0;
    Text text;
  };
  Part mapping;       // inductor_provenance_tracking_node_mappings: from PyTorch 2.7 on
  Part stacks;        // inductor_provenance_tracking_kernel_stack_traces: from 2.9 on
  Part kernel_nodes;  // inductor_triton_kernel_to_post_grad_nodes (2.7), …_generated_… (2.8)
  Part post_to_pre;   // inductor_post_to_pre_grad_nodes: 2.7, 2.8
};

const CodeSummary* CodeOf(const GraphState& graph) {
  const auto* code = graph.texts.Find<GraphCode>();
  return code == nullptr ? nullptr : code->summary.get();
}

PrintedGraphs PrintedFor(const GraphState& graph) {
  const auto* printed = graph.families.Find<PrintedGraphs>();
  return printed == nullptr ? PrintedGraphs() : *printed;
}

class ProvenanceIngestor final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<KernelRow>();
    tables.Use<KernelNodeRow>();
    tables.Use<NodeMappingRow>();
    tables.Use<KernelSourceRow>();
    tables.Use<LeftoverKernelRow>();
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
    ProvenanceTexts::Part& part = PartOf(record.name, graph->texts.Get<ProvenanceTexts>());
    part.payload_id = record.payload_id;
    part.text = TextOf(record.payload_id, context);
    MakeRoom(*record.process, *graph, context);
    if (!graph->is_open) return GraphClosed(*record.compile, *graph, context);  // it came late
    return {};
  }

  Result<void> GraphClosed(const CompileState& compile, GraphState& graph,
                           IngestContext& context) override {
    const auto* known_texts = graph.texts.Find<ProvenanceTexts>();
    if (graph.id == 0 || (CodeOf(graph) == nullptr && known_texts == nullptr)) return {};
    const ProvenanceTexts texts = known_texts == nullptr ? ProvenanceTexts() : *known_texts;
    const PrintedGraphs printed = PrintedFor(graph);
    const PrintedGraphs forward = PrintedFor(ForwardOf(compile, graph));
    const std::int64_t aot_content_id = graph.direction == Direction::kBackward
                                            ? forward.aot_backward_content_id
                                            : forward.aot_forward_content_id;
    const std::int64_t pre_grad_content_id = forward.pre_grad_content_id;
    const std::int64_t post_grad_content_id =
        printed.post_grad_content_id != 0 ? printed.post_grad_content_id : aot_content_id;
    SequenceHash parts;
    for (const std::int64_t part :
         {CodeOf(graph) == nullptr ? 0 : graph.code_payload_id, texts.mapping.payload_id,
          texts.stacks.payload_id, texts.kernel_nodes.payload_id, texts.post_to_pre.payload_id,
          pre_grad_content_id, post_grad_content_id}) {
      parts.Add(part);
    }
    Seen& seen = seen_[compile.process->id];
    const auto [known, is_new] = known_.try_emplace(parts.Digest());
    Known& joined = known->second;
    // What is left over depends on the graphs before: the same texts may mean other kernels.
    const std::vector<bool> is_leftover = LeftoversOf(joined, seen, compile, graph);
    if (is_new || is_leftover != joined.is_leftover)
      joined = Build(compile, graph, pre_grad_content_id, post_grad_content_id, context);
    for (const std::uint64_t key : joined.keys) seen.first_graph.try_emplace(key, graph.id);
    const std::int64_t count =
        std::count(joined.is_leftover.begin(), joined.is_leftover.end(), true);
    if (count > 0 && seen.graphs.insert(graph.id).second) seen.leftover_count += count;
    graph.provenance_content_id = joined.content_id;
    return {};
  }

  Result<void> ProcessEnded(ProcessState& process, IngestContext& context) override {
    const auto seen = seen_.find(process.id);
    if (seen == seen_.end()) return {};
    if (seen->second.leftover_count > 0) {
      context.Log(ImportCode::kLeftoverKernels,
                  "process " + std::to_string(process.pid) + ": " +
                      std::to_string(seen->second.leftover_count) +
                      " kernels of earlier graphs in the stack traces of " +
                      std::to_string(seen->second.graphs.size()) + " graphs");
    }
    seen_.erase(seen);
    return {};
  }

 private:
  // The kernels of a process's graphs so far.
  struct Seen {
    std::unordered_map<std::uint64_t, std::int64_t> first_graph;  // by name and handle: its id
    std::unordered_set<std::int64_t> graphs;                      // that have leftovers
    std::int64_t leftover_count = 0;
  };
  // What graphs with the same texts are made of.
  struct Known {
    std::int64_t content_id = 0;
    std::vector<std::uint64_t> keys;        // of all kernels, leftovers included
    std::vector<std::uint64_t> candidates;  // of those that the code does not know
    std::vector<bool> is_leftover;          // of the candidates
  };

  // Texts of graphs under way may take so much.
  static constexpr std::size_t kMostTextBytes = 48 << 20;

  // The payload's text, shared with the graphs that have it already.
  ProvenanceTexts::Text TextOf(std::int64_t payload_id, IngestContext& context) {
    std::weak_ptr<const std::string>& known = texts_[payload_id];
    ProvenanceTexts::Text text = known.lock();
    if (text == nullptr) {
      text = std::make_shared<const std::string>(context.Payload());
      known = text;
      text_bytes_ += text->size();
    }
    return text;
  }

  // Forgets graphs until the texts take no more than they may.
  void MakeRoom(const ProcessState& process, const GraphState& graph, IngestContext& context) {
    while (text_bytes_ > kMostTextBytes || texts_.size() > 2 * kMostTexts) {
      CountTexts();
      if (text_bytes_ <= kMostTextBytes && texts_.size() <= kMostTexts) return;
      const std::optional<bool> was_open = context.graphs().ForgetOldest(graph, context);
      if (!was_open) return;
      if (*was_open && limited_.insert(process.id).second) {
        context.Log(ImportCode::kMemoryLimit,
                    "the provenance of graphs under way takes more than " +
                        std::to_string(kMostTextBytes) + " bytes (first of this process)");
      }
    }
  }

  void CountTexts() {
    text_bytes_ = 0;
    for (auto text = texts_.begin(); text != texts_.end();) {
      const ProvenanceTexts::Text held = text->second.lock();
      text_bytes_ += held == nullptr ? 0 : held->size();
      text = held == nullptr ? texts_.erase(text) : std::next(text);
    }
  }

  // PyTorch 2.14 repeats kernels of earlier backwards in the stack traces of later ones. A kernel is
  // left over if an earlier graph of the process had it and this graph's code does not mention it,
  // provided that the code shows its calls. libtrace writes the package's own values.
  static bool MayHaveLeftovers(const CompileState& compile, const GraphState& graph) {
    const CodeSummary* code = CodeOf(graph);
    return code != nullptr && !code->has_wrapped_calls && !compile.process->is_of_libtrace &&
           std::any_of(code->kernels.begin(), code->kernels.end(),
                       [](const CodeKernel& kernel) { return kernel.line > 0; });
  }
  static bool IsOfEarlier(std::uint64_t key, const Seen& seen, const GraphState& graph) {
    const auto first = seen.first_graph.find(key);
    return first != seen.first_graph.end() && first->second != graph.id;
  }
  static std::vector<bool> LeftoversOf(const Known& known, const Seen& seen,
                                       const CompileState& compile, const GraphState& graph) {
    std::vector<bool> is_leftover;
    const bool may_have = MayHaveLeftovers(compile, graph);
    for (const std::uint64_t key : known.candidates)
      is_leftover.push_back(may_have && IsOfEarlier(key, seen, graph));
    return is_leftover;
  }

  static ProvenanceTexts::Part& PartOf(std::string_view name, ProvenanceTexts& texts) {
    if (name == "inductor_provenance_tracking_node_mappings") return texts.mapping;
    if (name == "inductor_provenance_tracking_kernel_stack_traces") return texts.stacks;
    if (name == "inductor_post_to_pre_grad_nodes") return texts.post_to_pre;
    return texts.kernel_nodes;
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

  // The graph's provenance, whose rows are added if it is new; content_id 0 if there is nothing to
  // say.
  Known Build(const CompileState& compile, const GraphState& graph,
              std::int64_t pre_grad_content_id, std::int64_t post_grad_content_id,
              IngestContext& context) {
    ProvenanceBuilder builder(context);
    if (const CodeSummary* code = CodeOf(graph)) builder.AddCode(*code);
    if (const auto* texts = graph.texts.Find<ProvenanceTexts>()) {
      WithObject(texts->mapping.text, [&](const auto& object) { builder.AddNodeMappings(object); });
      WithObject(texts->kernel_nodes.text,
                 [&](const auto& object) { builder.AddKernelNodes(object); });
      WithObject(texts->post_to_pre.text,
                 [&](const auto& object) { builder.AddPostToPre(object); });
      WithObject(texts->stacks.text, [&](const auto& object) { builder.AddStackTraces(object); });
    }
    const std::shared_ptr<const GraphNodes> pre_grad =
        context.graphs().nodes().Find(pre_grad_content_id);
    const std::shared_ptr<const GraphNodes> post_grad =
        context.graphs().nodes().Find(post_grad_content_id);
    Provenance provenance = builder.Finish(pre_grad.get(), post_grad.get());
    Known known;
    for (const Provenance::Kernel& kernel : provenance.kernels) {
      known.keys.push_back(kernel.KeyHash());
      if (!kernel.is_in_code) known.candidates.push_back(known.keys.back());
    }
    const Seen& seen = seen_[compile.process->id];
    known.is_leftover = LeftoversOf(known, seen, compile, graph);
    const bool may_have = MayHaveLeftovers(compile, graph);
    provenance.RemoveLeftovers([&](const Provenance::Kernel& kernel) {
      return may_have && !kernel.is_in_code && IsOfEarlier(kernel.KeyHash(), seen, graph);
    });
    if (builder.odd_count() > 0) {
      context.Log(ImportCode::kBadPayload,
                  "provenance of graph " + std::to_string(graph.ordinal) + " of its compile: " +
                      std::to_string(builder.odd_count()) + " members of unexpected type left out");
    }
    if (provenance.empty()) return known;
    const ContentId content = context.contents().Intern(
        context.rows(), ContentKind::kProvenance, provenance.Hash(),
        graph.code_record_id != 0 ? graph.code_record_id : graph.record_id);
    if (content.is_new) AddRows(content.id, provenance, context);
    known.content_id = content.id;
    return known;
  }

  template <typename Visit>
  void WithObject(const ProvenanceTexts::Text& shared, Visit&& visit) {
    if (shared == nullptr || shared->empty()) return;
    const std::string_view text = *shared;
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
        const std::vector<Provenance::Frame>& frames = kernel.stacks[stack].frames;
        for (std::size_t frame = 0; frame < frames.size(); ++frame) {
          const Provenance::Frame& source = frames[frame];
          rows.Add(KernelSourceRow{.kernel_id = kernel_id,
                                   .stack_ordinal = stack,
                                   .frame_ordinal = frame,
                                   .file_id = source.file,
                                   .line = source.line,
                                   .function_id = id(source.function),
                                   .code_id = id(source.code),
                                   .basis = kernel.basis,
                                   .entry_count = kernel.stacks[stack].entry_count});
        }
      }
    }
    ordinal = 0;
    for (const Provenance::Kernel& kernel : provenance.leftovers)
      rows.Add(LeftoverKernelRow{.content_id = content_id,
                                 .ordinal = ordinal++,
                                 .name = kernel.name,
                                 .debug_handle = kernel.handle});
    for (const auto& [post, pre] : provenance.node_mapping)
      rows.Add(
          NodeMappingRow{.content_id = content_id, .post_grad_node = post, .pre_grad_node = pre});
  }

  simdjson::dom::parser parser_;
  std::unordered_set<std::int64_t> checked_;  // payloads that are JSON objects
  // By what it is made of, so that graphs with the same payloads are joined once.
  std::unordered_map<Hash128, Known, Hash128Hasher> known_;
  std::unordered_map<std::int64_t, Seen> seen_;  // by process, until it ends
  // By payload: of the graphs under way.
  static constexpr std::size_t kMostTexts = 16384;
  std::unordered_map<std::int64_t, std::weak_ptr<const std::string>> texts_;
  std::size_t text_bytes_ = 0;                // at most: some may have been freed
  std::unordered_set<std::int64_t> limited_;  // processes for which it was reported
};

}  // namespace

TLPARSE_ARTIFACT(provenance, ProvenanceIngestor,
                 "artifact/inductor_provenance_tracking_node_mappings",
                 "artifact/inductor_provenance_tracking_kernel_stack_traces",
                 "artifact/inductor_triton_kernel_to_post_grad_nodes",
                 "artifact/inductor_generated_kernel_to_post_grad_nodes",
                 "artifact/inductor_post_to_pre_grad_nodes")

}  // namespace tlparse
