#include "artifacts/common/graph/graph_tracker.h"

#include <algorithm>
#include <utility>

#include "artifacts/common/text/safe_text.h"
#include "rows/core.h"

namespace tlparse {

namespace {

// How far back SetDirection looks for a key: its event follows the graph at once.
constexpr std::size_t kRecentGraphs = 16;

GraphState* LatestOf(const CompileState& compile, std::string_view subgraph_name) {
  const auto found = compile.latest_graphs.find(subgraph_name);
  return found == compile.latest_graphs.end() ? nullptr : found->second;
}

Direction DirectionOf(std::string_view aot_id) {
  const std::string_view suffix = aot_id.substr(std::min(aot_id.find('_'), aot_id.size()));
  if (suffix == "_forward") return Direction::kForward;
  if (suffix == "_backward") return Direction::kBackward;
  if (suffix == "_inference") return Direction::kInference;
  if (suffix == "_joint") return Direction::kJoint;
  return Direction::kUnknown;
}

std::optional<std::int64_t> NonZero(std::int64_t id) {
  return id == 0 ? std::nullopt : std::optional(id);
}

}  // namespace

GraphTracker::GraphTracker(TableSet& tables) { tables.Use<GraphRow>(); }

// Segments that nothing ends stay open so long: more than a merged log of as many ranks can have
// open at once.
constexpr std::size_t kMaxOpen = 2048;

GraphState& GraphTracker::Open(const Record& record, IngestContext& context) {
  if (record.compile == nullptr) {
    *no_graph_ = GraphState();
    return *no_graph_;
  }
  CompileState& compile = *record.compile;
  if (GraphState* previous = LatestOf(compile, record.subgraph_name)) {
    Close(compile, *previous, context);
    previous->texts.Clear();
  }
  auto graph = std::make_unique<GraphState>();
  graph->id = context.NextId<GraphRow>();
  graph->ordinal = static_cast<std::int64_t>(compile.graphs.size());
  graph->subgraph_name =
      record.subgraph_name.empty() ? compile.next_graph_name : record.subgraph_name;
  graph->record_id = record.id;
  graph->families = compile.next_families;
  // What AOTAutograd printed last is compiled next; AOT id and events may correct it.
  graph->direction = std::exchange(compile.next_direction, Direction::kUnknown);
  compile.graphs.push_back(std::move(graph));
  GraphState& opened = *compile.graphs.back();
  compile.latest_graphs[std::string(record.subgraph_name)] = &opened;
  log_->opened.push_back({&compile, &opened});
  if (log_->opened.size() > kMaxOpen) {
    Close(*log_->opened.front().first, *log_->opened.front().second, context);
    log_->opened.pop_front();
  }
  return opened;
}

GraphState* GraphTracker::Current(const Record& record, bool or_last) {
  if (record.compile == nullptr) return nullptr;
  GraphState* graph = LatestOf(*record.compile, record.subgraph_name);
  return graph != nullptr && (graph->is_open || or_last) ? graph : nullptr;
}

GraphState* GraphTracker::CurrentOrOpen(const Record& record, IngestContext& context) {
  GraphState* graph = Current(record, true);
  return graph == nullptr && record.compile != nullptr ? &Open(record, context) : graph;
}

GraphState& GraphTracker::ForOutputCode(const Record& record, std::string_view aot_id,
                                        IngestContext& context) {
  GraphState* graph = Current(record);
  if (graph != nullptr && graph->code_record_id != 0) {
    const bool is_again = (!aot_id.empty() && graph->aot_id == aot_id) ||
                          (record.payload_id != 0 && graph->code_payload_id == record.payload_id);
    if (!is_again) graph = nullptr;
  }
  if (graph == nullptr) graph = &Open(record, context);
  if (graph->code_record_id == 0) {
    graph->code_record_id = record.id;
    graph->code_payload_id = record.payload_id;
    graph->aot_id = aot_id;
    if (const Direction direction = DirectionOf(aot_id); direction != Direction::kUnknown)
      graph->direction = direction;
  }
  return *graph;
}

GraphState& GraphTracker::ForCacheEvent(const Record& record, IngestContext& context) {
  GraphState* graph = Current(record, true);
  if (graph == nullptr || (!graph->is_open && graph->has_cache_artifact))
    graph = &Open(record, context);
  graph->has_cache_artifact = true;
  if (record.compile != nullptr) Close(*record.compile, *graph, context);
  return *graph;
}

// Closed graphs whose code and provenance texts stay in memory for an artifact that comes late:
// memory must not grow with the log.
constexpr std::size_t kMaxRemembered = 64;

void GraphTracker::Close(CompileState& compile, GraphState& graph, IngestContext&) {
  if (!graph.is_open || graph.id == 0) return;
  graph.is_open = false;
  if (on_close) on_close(compile, graph);
  log_->remembered.push_back(&graph);
  if (log_->remembered.size() > kMaxRemembered) {
    log_->remembered.front()->texts.Clear();
    log_->remembered.pop_front();
  }
}

void GraphTracker::CloseAll(CompileState& compile, IngestContext& context) {
  for (const auto& [subgraph_name, graph] : compile.latest_graphs) {
    Close(compile, *graph, context);
    graph->texts.Clear();
  }
}

std::optional<bool> GraphTracker::ForgetOldest(const GraphState& kept, IngestContext& context) {
  const auto forget_closed = [&kept](LogGraphs& log) {
    for (auto closed = log.remembered.begin(); closed != log.remembered.end(); ++closed) {
      if (*closed == &kept) continue;
      (*closed)->texts.Clear();
      log.remembered.erase(closed);
      return true;
    }
    return false;
  };
  if (forget_closed(*log_)) return false;
  for (LogGraphs* const log : logs_) {
    if (log != log_ && forget_closed(*log)) return false;
  }
  for (auto opened = log_->opened.begin(); opened != log_->opened.end(); ++opened) {
    const auto [compile, graph] = *opened;
    if (graph == &kept) continue;
    const bool was_open = graph->is_open;
    log_->opened.erase(opened);
    Close(*compile, *graph, context);
    graph->texts.Clear();
    return was_open;
  }
  return std::nullopt;
}

void GraphTracker::BeginLog(LogGraphs& log) {
  logs_.push_back(&log);
  log_ = &log;
}

void GraphTracker::EndLog(LogGraphs& log) {
  std::erase(logs_, &log);
  if (log_ == &log) log_ = nullptr;
}

void GraphTracker::SetDirection(CompileState& compile, std::string_view cache_key,
                                bool is_backward) {
  if (compile.graphs.empty()) return;
  GraphState* graph = compile.graphs.back().get();
  if (!cache_key.empty()) {
    const std::size_t oldest =
        compile.graphs.size() - std::min(compile.graphs.size(), kRecentGraphs);
    for (std::size_t index = compile.graphs.size(); index-- > oldest;) {
      if (compile.graphs[index]->cache_key != cache_key) continue;
      graph = compile.graphs[index].get();
      break;
    }
  }
  if (is_backward) {
    graph->direction = Direction::kBackward;
  } else if (graph->direction == Direction::kUnknown || graph->direction == Direction::kBackward) {
    graph->direction = Direction::kForward;  // "not backward" leaves a forward or inference graph
                                             // as its AOT id says
  }
}

void GraphTracker::WriteRows(CompileState& compile, std::size_t first, IngestContext& context) {
  RowBatch& rows = context.rows();
  const auto text = [&rows](std::string_view value) {
    return value.empty() ? std::nullopt : std::optional<StaticText>(SafeText(rows, value));
  };
  for (std::size_t ordinal = first; ordinal < compile.graphs.size(); ++ordinal) {
    const std::unique_ptr<GraphState>& graph = compile.graphs[ordinal];
    rows.Add(GraphRow{.id = graph->id,
                      .compile_id = compile.id,
                      .ordinal = graph->ordinal,
                      .direction = text(Name(graph->direction)),
                      .subgraph_name = text(graph->subgraph_name),
                      .aot_id = text(graph->aot_id),
                      .cache_key = text(graph->cache_key),
                      .record_id = NonZero(graph->record_id),
                      .code_record_id = NonZero(graph->code_record_id),
                      .provenance_content_id = NonZero(graph->provenance_content_id)});
  }
}

}  // namespace tlparse
