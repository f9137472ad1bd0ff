#include "facts/compiles/not_finite.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "artifacts/common/graph/graph_nodes.h"
#include "queries/facts/compiles/not_finite.h"

namespace tlparse {
namespace {

// Names of what a printed graph returns, in order: "return (a, None, b)", one a line since 2.12.
std::vector<std::string> ReturnedNames(std::string_view text) {
  std::vector<std::string> names;
  const std::size_t found = text.rfind("\n        return ");
  if (found == std::string_view::npos) return names;
  std::string name;
  bool is_comment = false;
  for (const char c : text.substr(found + std::string_view("\n        return ").size())) {
    if (c == '#') is_comment = true;
    if (c == '\n') is_comment = false;
    if (is_comment || c == ' ' || c == '\n' || c == '(' || c == '[') continue;
    if (c != ',' && c != ')' && c != ']') {
      name += c;
      continue;
    }
    if (!name.empty()) names.push_back(std::move(name));
    name.clear();
    if (c != ',') return names;
  }
  return {};  // it does not end: cut
}

// Sets the line of the first node, in the order of the graph, whose value holds NaN.
void FindLine(std::string_view text, NanCall& call) {
  const std::vector<std::string> names = ReturnedNames(text);
  ParsedGraph graph;
  ParseGraphNodes(text, graph);
  for (const ParsedGraph::Node& node : graph.nodes) {
    const bool is_nan =
        std::any_of(call.outputs.begin(), call.outputs.end(), [&](const NotFiniteTensor& output) {
          const auto position = static_cast<std::size_t>(output.position);
          return position < names.size() && names[position] == node.name;
        });
    if (!is_nan) continue;
    if (node.source < 0) return;
    const SourceLine& source = graph.sources[static_cast<std::size_t>(node.source)];
    call.file = source.file;
    call.line = source.line;
    call.code = source.code;
    return;
  }
}

}  // namespace

Result<std::vector<NanGraph>> FindNanGraphs(Database& database, const Job& job) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::string>, NanGraph> graphs;
  FOR_EACH_ROW(const LookedAtCall& row,
               Query<LookedAtCall>(database, {.in_logs = job.InLogs("d.record_id")})) {
    const JobCompile* const compile = row.compile_id ? job.FindCompile(*row.compile_id) : nullptr;
    if (compile == nullptr) continue;
    NanGraph& graph = graphs[{row.process_id, compile->id, std::string(row.graph)}];
    if (row.has_nan && graph.nan_calls == 0) {
      graph.compile = compile;
      graph.graph = row.graph;
      graph.record_id = row.record_id;
      graph.time_us = row.time_us;
      graph.call = row.call;
    }
    graph.nan_calls += row.has_nan ? 1 : 0;
    ++(graph.nan_calls > 0 ? graph.later_calls : graph.finite_before);
    graph.is_nan_at_end = row.has_nan;
  }
  std::vector<NanGraph> found;
  for (auto& [key, graph] : graphs) {
    if (graph.nan_calls > 0) found.push_back(std::move(graph));
  }
  std::sort(found.begin(), found.end(), [](const NanGraph& a, const NanGraph& b) {
    return std::tuple(a.time_us.value_or(INT64_MAX), a.record_id) <
           std::tuple(b.time_us.value_or(INT64_MAX), b.record_id);
  });
  return found;
}

Result<NanCall> LoadNanCall(Database& database, const NanGraph& graph) {
  NanCall call;
  FOR_EACH_ROW(const NotFinitePart& row,
               Query<NotFinitePart>(database, {.record_id = graph.record_id})) {
    (row.is_input ? call.inputs : call.outputs)
        .push_back({row.position, std::string(row.type), row.nan_count, row.inf_count});
  }
  // Of several graphs of a direction it is not known whose text is whose.
  const bool is_one =
      graph.graph == "forward" || graph.graph == "backward" || graph.graph == "inference";
  if (!is_one) return call;
  const std::string stage = "aot_" + graph.graph + "_graph";
  FOR_EACH_ROW(
      const TextOfCompiledGraph& row,
      Query<TextOfCompiledGraph>(database, {.compile_id = graph.compile->id, .stage = stage})) {
    FindLine(row.content, call);
  }
  return call;
}

}  // namespace tlparse
