// Splits the records of a compile into graphs. The records of a graph are a segment of the log:
//
//   opens with    fx_graph_runnable; on a cache hit of PyTorch 2.6 inductor_output_code
//   closes with   fx_graph_cache_* (artifact or instant event), the E event inductor_compile, the
//                 next record that opens a segment, or the end of the compile
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "artifacts/artifact.h"
#include "artifacts/common/graph/graph_nodes.h"

namespace tlparse {

// Graphs live as long as their compile. A record outside any compile gets a GraphState with id 0,
// which is not a graph and is valid until the next such call.
class GraphTracker {
 public:
  // The graphs of one log that are open, or closed and still kept.
  struct LogGraphs {
    std::deque<std::pair<CompileState*, GraphState*>> opened;  // oldest first; some are closed
    std::deque<GraphState*> remembered;                        // closed ones, oldest first
  };
  explicit GraphTracker(TableSet& tables);

  // The record opens a new segment; an open one of the same subgraph is closed first.
  GraphState& Open(const Record& record, IngestContext& context);
  // The segment the record belongs to: the open one, else (with `or_last`) the latest closed one of
  // the same subgraph; nullptr if there is none or the record has no compile.
  GraphState* Current(const Record& record, bool or_last = false);
  // The same with `or_last`; opens one if the compile has none. For records that imply a graph
  // where no record opens one (other compilers than Inductor, loaded AOTInductor packages). nullptr
  // only if the record has no compile.
  GraphState* CurrentOrOpen(const Record& record, IngestContext& context);
  // For inductor_output_code: Open() unless a segment is open that has no output code yet, or has
  // this same code (it can be logged twice). Stores the code's record, payload, AOT id and the
  // direction given by that id.
  GraphState& ForOutputCode(const Record& record, std::string_view aot_id, IngestContext& context);
  // The segment that an fx_graph_cache_* artifact ends: the open one, else the latest one if it has
  // no such artifact yet (events may have closed it), else a new one. It is closed by this call.
  GraphState& ForCacheEvent(const Record& record, IngestContext& context);
  void Close(CompileState& compile, GraphState& graph, IngestContext& context);
  // Closes every open segment of the compile.
  void CloseAll(CompileState& compile, IngestContext& context);
  // Frees the texts of the oldest segment other than `kept`: of the closed ones of this log; else of the closed ones of other logs;
  // else of the open ones of this log, which closes it (true is returned). Nothing: no segment holds texts.
  std::optional<bool> ForgetOldest(const GraphState& kept, IngestContext& context);
  // inductor_compile's E event: sets the direction of the graph with that key, else of the latest
  // one.
  void SetDirection(CompileState& compile, std::string_view cache_key, bool is_backward);
  // To be called when a log begins, when it is resumed, and before the states of its graphs are destroyed.
  void BeginLog(LogGraphs& log);
  void TakeUp(LogGraphs& log) { log_ = &log; }
  void EndLog(LogGraphs& log);
  // Writes the rows of the compile's graphs from the one with ordinal `first` on; of all of them
  // when the process ends.
  void WriteRows(CompileState& compile, std::size_t first, IngestContext& context);

  // Called when a segment closes, for every ingestor.
  std::function<void(CompileState&, GraphState&)> on_close;

  GraphNodePool& nodes() { return nodes_; }

 private:
  std::vector<LogGraphs*> logs_;  // that were begun and not ended
  LogGraphs* log_ = nullptr;      // the one being read
  GraphNodePool nodes_;
  std::unique_ptr<GraphState> no_graph_ = std::make_unique<GraphState>();
};

}  // namespace tlparse
