#include "findings/compiled_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "artifacts/common/graph/graph_nodes.h"
#include "artifacts/common/text/python_traceback.h"
#include "facts/text/shorten.h"
#include "findings/exit_texts.h"
#include "inputs/join/recorder_code.h"
#include "queries/facts/job/exits.h"
#include "queries/findings/compiled_lines.h"

namespace tlparse {
namespace {

// The frame of compiled code in which a traceback ends, but for frames of libraries below it.
struct CompiledFrame {
  bool is_graph = false;  // of torch.fx: "<eval_with_key>.9"; else of a generated file
  std::string file;
  std::int64_t line = 0;
  std::string statement;  // of the line: "addmm = torch.ops.aten.addmm.default(a, b)"
};

std::optional<CompiledFrame> LastCompiledFrame(std::string_view traceback) {
  std::optional<CompiledFrame> last;
  while (!traceback.empty()) {
    const std::optional<PythonFrame> frame = ParseFrameLine(NextLine(traceback));
    if (!frame) continue;
    const bool is_graph = frame->file.starts_with("<eval_with_key>");
    if (is_graph || IsGeneratedFile(frame->file)) {
      std::string_view rest = traceback;
      std::string_view line = TrimEnd(NextLine(rest));
      line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
      last = CompiledFrame{is_graph, std::string(frame->file), frame->line,
                           std::string(line.substr(0, line.find(";  ")))};
    } else if (IsUserFile(frame->file)) {
      last.reset();
    }
  }
  return last;
}

using PlacesByLine =
    std::map<std::pair<std::string, std::int64_t>, std::string>;  // with their code

struct CompiledOrigin {
  std::string what;  // "mm = torch.ops.aten.mm.default(a, b) in the graph of 1/0 forward"
  PlacesByLine places;
};

Result<CompiledOrigin> OriginOfNode(const FindingContext& context, const FatalException& raised,
                                    std::int64_t process_id, const CompiledFrame& frame) {
  CompiledOrigin of_function, of_any;
  ParsedGraph statement, graph;
  ParseGraphNodes(frame.statement, statement);
  const std::size_t equals = frame.statement.find(" = ");
  if (statement.nodes.size() != 1 || equals == std::string::npos) return of_any;
  const ParsedGraph::Node& failed = statement.nodes.front();
  FOR_EACH_ROW(
      const GraphWithStatement& row,
      Query<GraphWithStatement>(context.database, {.process_id = process_id,
                                                   .statement = frame.statement.substr(equals)})) {
    const bool is_of_function = row.file == raised.file && row.line == raised.line;
    ParseGraphNodes(row.content, graph);
    for (const ParsedGraph::Node& node : graph.nodes) {
      if (node.name != failed.name || node.operation != failed.operation || node.source < 0)
        continue;
      const SourceLine& source = graph.sources[static_cast<std::size_t>(node.source)];
      for (CompiledOrigin* origin : {&of_any, is_of_function ? &of_function : nullptr}) {
        if (origin == nullptr) continue;
        origin->what = fmt::format("{} in the graph of {} {}", Shorten(frame.statement, 100),
                                   row.label, row.function);
        origin->places.try_emplace({std::string(source.file), source.line}, source.code);
      }
    }
  }
  return of_function.places.empty() ? of_any : of_function;
}

// The kernel that is called at the line, or for which the line allocates.
Result<CompiledOrigin> OriginOfKernel(const FindingContext& context, std::int64_t process_id,
                                      const CompiledFrame& frame) {
  CompiledOrigin origin;
  const bool allocates = frame.statement.find("empty_strided") != std::string::npos;
  std::int64_t code_line = 0;
  std::map<std::int64_t, std::pair<std::pair<std::string, std::int64_t>, std::string>> innermost;
  FOR_EACH_ROW(
      const KernelFromLine& row,
      Query<KernelFromLine>(context.database,
                            {.process_id = process_id, .path = frame.file, .line = frame.line})) {
    if (code_line == 0) code_line = row.code_line;
    if (row.code_line != code_line || (code_line != frame.line && !allocates)) break;
    origin.what = fmt::format("{} {} in the generated code of {} {}, line {}",
                              allocates ? "what is allocated for" : "the call of", row.name,
                              row.label, row.function, frame.line);
    if (!row.file.empty() && IsUserFile(row.file))
      innermost[row.stack_ordinal] = {{std::string(row.file), row.line}, std::string(row.code)};
  }
  for (auto& [ordinal, place] : innermost) origin.places.insert(std::move(place));
  return origin;
}

std::int64_t ProcessOfRank(const FindingContext& context, std::optional<std::int64_t> rank) {
  for (const RankIndex one : context.All()) {
    const JobParticipant& participant = context.job.participants()[static_cast<std::size_t>(one)];
    if (participant.rank == rank && !participant.is_extra_log)
      return context.StatusOf(one).process_id;
  }
  return 0;
}

}  // namespace

Result<void> SayCompiledLine(const FindingContext& context, const FatalException& raised,
                             std::optional<std::int64_t> process_id, Finding& finding) {
  ASSIGN_OR_RETURN(const std::string kernel, KernelOf(context.database, raised));
  if (!kernel.empty()) return SayIndex(context, kernel, finding);
  ASSIGN_OR_RETURN(const FirstRow<TracebackOf> row,
                   First(Query<TracebackOf>(context.database, {.id = raised.id})));
  const std::optional<CompiledFrame> frame = LastCompiledFrame(row->traceback);
  const std::int64_t process = process_id ? *process_id : ProcessOfRank(context, raised.rank);
  if (!frame || process == 0) return {};
  ASSIGN_OR_RETURN(const CompiledOrigin origin, frame->is_graph
                                                    ? OriginOfNode(context, raised, process, *frame)
                                                    : OriginOfKernel(context, process, *frame));
  constexpr std::size_t kMaxPlaces = 4;
  if (origin.places.empty() || origin.places.size() > kMaxPlaces) return {};
  std::vector<std::string> places;
  for (const auto& [place, code] : origin.places)
    places.push_back(PlaceText({place.first, place.second, {}}));
  finding.detail +=
      fmt::format(" It came of {}, which was made of {}.", origin.what, fmt::join(places, ", "));
  if (places.size() > 1) return {};
  const auto& [place, code] = *origin.places.begin();
  finding.place = FindingPlace{place.first, place.second, code};
  return {};
}

}  // namespace tlparse
