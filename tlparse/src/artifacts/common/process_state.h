// What is known of one process of a log while it is read: its strings, compiles and open events.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "artifacts/common/graph/direction.h"

namespace tlparse {

struct CacheLookups;  // artifacts/common/cache/cache_events.h
struct CodeSummary;   // artifacts/common/graph/code_summary.h

// The ids of an envelope. Absent members are empty.
struct CompileIds {
  std::optional<std::int64_t> compiled_autograd_id;
  std::optional<std::int64_t> frame_id;
  std::optional<std::int64_t> frame_compile_id;
  bool empty() const { return !compiled_autograd_id && !frame_id && !frame_compile_id; }
  bool operator==(const CompileIds&) const = default;
  std::string Label() const;  // 0/1, !2, !2/0/1
  // the inverse; ignores a "_N" attempt suffix; "None" → nothing
  static std::optional<CompileIds> Parse(std::string_view label);
};

// JSON texts of a graph's provenance artifacts (reference 4.5); null for those it does not have.
// Graphs with the same payload share its text.
struct ProvenanceTexts {
  using Text = std::shared_ptr<const std::string>;
  Text mapping;
  Text stacks;
  Text kernel_nodes;
  Text post_to_pre;
};

// One graph of a compile while its records come in (reference 7.3). Its row is written when the
// process ends.
struct GraphState {
  std::int64_t id = 0;
  std::int64_t ordinal = 0;
  Direction direction = Direction::kUnknown;
  std::string subgraph_name;
  std::string aot_id;
  std::string cache_key;
  std::int64_t record_id = 0;       // that opened it
  std::int64_t code_record_id = 0;  // 0: no output code yet
  bool is_open = true;
  bool has_cache_artifact = false;  // a fx_graph_cache_* artifact was attached
  std::int64_t cache_event_id = 0;
  // The content that holds its kernels (provenance.cc); 0: none.
  std::int64_t provenance_content_id = 0;
  // Its pre-grad and post-grad graphs' nodes (GraphTracker::nodes()); 0: none.
  std::int64_t pre_grad_content_id = 0;
  std::int64_t post_grad_content_id = 0;
  // Of the AOTAutograd graphs printed before it: they stand in for the post-grad graph where that
  // is not logged (2.6, cache hit).
  std::int64_t aot_forward_content_id = 0;
  std::int64_t aot_backward_content_id = 0;
  // What its generated code says, and the texts of its provenance artifacts: what provenance is
  // made of when the graph closes. Kept until the next graph opens or the compile ends, because an
  // artifact may come after the event that closes the graph.
  std::shared_ptr<const CodeSummary> code;
  std::shared_ptr<ProvenanceTexts> provenance_texts;
  // Ids of those payloads, 0 = none.
  std::int64_t code_payload_id = 0;
  std::int64_t mapping_payload_id = 0;
  std::int64_t stacks_payload_id = 0;
  // inductor_triton_kernel_to_post_grad_nodes and its successor
  std::int64_t kernel_nodes_payload_id = 0;
  std::int64_t post_to_pre_payload_id = 0;  // inductor_post_to_pre_grad_nodes
};

// One compile while its records come in. Its row is written at the end of the process.
struct CompileState {
  std::int64_t id = 0;
  const struct ProcessState* process = nullptr;
  CompileIds ids;
  std::string label;
  bool is_synthetic = false;
  std::int64_t generation = 0;
  std::int64_t first_record_id = 0;
  std::int64_t last_record_id = 0;

  bool has_start = false;         // dynamo_start
  bool has_metrics = false;       // (forward) compilation_metrics
  bool has_output_graph = false;  // dynamo_output_graph, or any AOT/Inductor graph or code
  bool is_failed = false;
  bool has_guarded_code = true;  // metrics say so; false: the frame was skipped
  std::int64_t max_attempt = 0;
  std::map<std::int64_t, std::string> restart_reasons;  // by attempt that followed
  std::optional<std::int64_t> start_time_us;
  // When dynamo_start was written, in the process's provisional time: for compiles whose metrics
  // are not in the log.
  std::optional<std::int64_t> start_local_us;
  std::optional<std::int64_t> duration_us;
  std::optional<std::int64_t> backward_duration_us;
  std::string function;
  std::string file;
  std::optional<std::int64_t> line;
  std::int64_t stack_id = 0;  // 0: none

  std::vector<std::unique_ptr<GraphState>> graphs;  // by ordinal
  // by the subgraph name of their records
  std::map<std::string, GraphState*, std::less<>> latest_graphs;
  std::string piece;  // what vLLM compiles next (vllm.cc): the name of graphs whose records name no
                      // subgraph
  // What the next segment compiles, by the AOTAutograd graphs printed before it: forward or
  // inference.
  Direction aot_direction = Direction::kUnknown;
  // The latest pre-grad graph's content (graph_node_row), for provenance; 0: none.
  std::int64_t pre_grad_content_id = 0;
  std::int64_t aot_forward_content_id = 0;  // likewise, of 2.6: the forward or inference graph
  std::int64_t aot_backward_content_id = 0;
  bool ends_inside_event = false;  // a chromium B without E at the end of the log
};

struct ProcessState {
  std::int64_t id = 0;
  std::int64_t pid = 0;
  std::optional<std::int64_t> rank;
  std::string rank_source;
  bool is_of_libtrace = false;  // libtrace wrote the log
  bool is_thread_id = false;
  std::string torch_version;
  std::string python_version;
  std::int64_t execution_count = 0;  // graph executions seen

  std::shared_ptr<CacheLookups> cache_lookups;  // those under way; nullptr: none

  // Interned strings of this process: id → text. Nothing if undefined. A forked child (2.6: same
  // file, another pid) has its parent's.
  std::optional<std::string_view> String(std::int64_t string_id) const {
    const ProcessState* process = this;
    for (int generation = 0; process != nullptr && generation < 8;
         ++generation, process = process->parent) {
      auto found = process->strings.find(string_id);
      if (found != process->strings.end()) return found->second;
    }
    return std::nullopt;
  }
  // The process that wrote to the file when this one first did
  const ProcessState* parent = nullptr;
  std::unordered_map<std::int64_t, std::string> strings;

  std::vector<std::unique_ptr<CompileState>> compiles;              // in order of appearance
  std::unordered_map<std::string, CompileState*> compile_by_label;  // latest generation
  CompileState* FindCompile(const std::string& label) const {
    auto found = compile_by_label.find(label);
    return found == compile_by_label.end() ? nullptr : found->second;
  }
};

}  // namespace tlparse
