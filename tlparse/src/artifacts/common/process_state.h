// State of one process while its log is read: its strings, compiles and open events.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "artifacts/common/family_state.h"
#include "artifacts/common/graph/direction.h"
#include "log/import_code.h"

namespace tlparse {

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

// State of one graph of a compile while its records are read (graph_tracker.h). Its row is written
// when the process ends.
struct GraphState {
  std::int64_t id = 0;
  std::int64_t ordinal = 0;
  Direction direction = Direction::kUnknown;
  std::string subgraph_name;
  std::string aot_id;
  std::string cache_key;
  std::int64_t record_id = 0;       // that opened it
  std::int64_t code_record_id = 0;  // 0: no output code yet
  std::int64_t code_payload_id = 0;
  bool is_open = true;
  bool has_cache_artifact = false;  // a fx_graph_cache_* artifact was attached
  // The content that holds its kernels (provenance.cc); 0: none.
  std::int64_t provenance_content_id = 0;
  FamilyStates families;
  // Large: kept until the next graph opens or the compile ends, because an artifact may follow the
  // event that closes the graph; freed earlier if memory is short.
  FamilyStates texts;
};

// State of one compile while its records are read. Its row is written at the end of the process.
struct CompileState {
  std::int64_t id = 0;
  const struct ProcessState* process = nullptr;
  CompileIds ids;
  std::string label;
  bool is_synthetic = false;
  std::int64_t generation = 0;
  std::int64_t first_record_id = 0;
  std::int64_t last_record_id = 0;
  ImportPlace first_place;  // of the first record

  bool has_start = false;         // dynamo_start
  bool has_metrics = false;       // (forward) compilation_metrics
  bool is_traced = false;         // Dynamo's event has begun
  bool is_loaded = false;         // … has not, and the compile has ended: it came from a store
  bool has_output_graph = false;  // dynamo_output_graph, or any AOT/Inductor graph or code
  bool is_failed = false;
  bool is_refused = false;  // at the recompile limit: the function runs eagerly
  bool has_graph_break = false;
  bool is_unsupported = false;  // failed with torch._dynamo.exc.Unsupported
  bool has_raised = false;  // … for an exception of the traced code, which the eager run raises too
  bool has_guarded_code = true;  // from the metrics; false: the frame was skipped
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
  // Of a stretch: the compile whose graph it compiles ahead of time (torch._dynamo.aot_compile).
  const CompileState* captured = nullptr;
  bool has_capture_time = false;  // start and duration are those of the event that encloses both

  std::vector<std::unique_ptr<GraphState>> graphs;  // by ordinal
  // by the subgraph name of their records
  std::map<std::string, GraphState*, std::less<>> latest_graphs;
  // Initial state of the next graph: its name if its records name no subgraph, its direction if
  // already known, and the state of the families.
  std::string next_graph_name;
  Direction next_direction = Direction::kUnknown;
  FamilyStates next_families;
  // The record of the event that ended the frame's compile. PyTorch writes it after the metrics.
  std::optional<ImportPlace> end_place;
  bool ends_inside_event = false;  // a chromium B without E at the end of the log
  bool is_touched = false;         // in ProcessState::touched
  std::size_t written_graphs = 0;  // rows of graphs that are in the database, the latest excepted
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
  std::int64_t capture_record_id = 0;  // of the open event fullgraph_capture; 0: none
  FamilyStates families;

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
  std::size_t string_bytes = 0;                     // of their texts
  std::optional<std::int64_t> first_string_number;  // of the first that it defined
  bool has_left_out_strings = false;

  std::vector<std::unique_ptr<CompileState>> compiles;              // in order of appearance
  std::unordered_map<std::string, CompileState*> compile_by_label;  // latest generation
  // by frame id: the latest compile with a function among those whose rows were written
  std::unordered_map<std::int64_t, const CompileState*> named_frames;
  // Compiles whose rows are not written, or have changed since.
  std::vector<CompileState*> touched;
  void Touch(CompileState& compile) {
    if (!compile.is_touched) touched.push_back(&compile);
    compile.is_touched = true;
  }
  CompileState* FindCompile(const std::string& label) const {
    auto found = compile_by_label.find(label);
    return found == compile_by_label.end() ? nullptr : found->second;
  }
};

}  // namespace tlparse
