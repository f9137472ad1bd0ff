// The first compiled graph that gives NaN, and what it spreads to.
#include "facts/compiles/not_finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/nth.h"
#include "base/plural.h"
#include "findings/context.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostTensors = 4;
constexpr std::size_t kMostFollowers = 3;

// "output 0 (float32[4, 1]): 4 values, output 5 (float32[4, 8]): 28"
std::string TensorsText(const std::vector<NotFiniteTensor>& tensors, std::string_view what) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostTensors, tensors.size()); ++i) {
    const NotFiniteTensor& one = tensors[i];
    text += fmt::format("{}{} {} ({})", i == 0 ? "" : ", ", what, one.position, one.type);
    if (one.nan_count > 0)
      text += fmt::format(": {} value{}", one.nan_count, PluralS(one.nan_count));
  }
  if (tensors.size() > kMostTensors)
    text += fmt::format(" and {} more", tensors.size() - kMostTensors);
  return text;
}

// "its 4th call on": call 3 of the record, which counts from 0.
std::string CallText(const NanGraph& graph) {
  if (!graph.call) return "some call";
  return graph.is_nan_at_end && graph.nan_calls == graph.later_calls
             ? fmt::format("its {} call on", Nth(*graph.call + 1))
             : fmt::format("its {} call", Nth(*graph.call + 1));
}

bool IsSameCall(const NanGraph& a, const NanGraph& b) {
  return a.compile->slot == b.compile->slot && a.graph == b.graph && a.call == b.call;
}

// "Then: the backward graph of 0/0 f from its 4th call on (ranks 0,1); …"
std::string FollowersText(const FindingContext& context, const NanGraph& first,
                          const std::vector<NanGraph>& graphs) {
  std::string text;
  std::size_t count = 0;
  std::vector<const NanGraph*> said;
  for (const NanGraph& graph : graphs) {
    const bool is_said = std::any_of(said.begin(), said.end(), [&](const NanGraph* one) {
      return one->compile->slot == graph.compile->slot && one->graph == graph.graph;
    });
    if (is_said || IsSameCall(first, graph)) continue;
    said.push_back(&graph);
    if (++count > kMostFollowers) continue;
    std::set<RankIndex> ranks;
    for (const NanGraph& other : graphs)
      if (IsSameCall(graph, other)) ranks.insert(other.compile->participant);
    text += fmt::format(
        "{} the {} graph of {} from {}{}", text.empty() ? " Then:" : ";", graph.graph,
        context.Title(*graph.compile), CallText(graph),
        context.HasRanks() ? " (" + context.WhoInside({ranks.begin(), ranks.end()}) + ")" : "");
  }
  if (count > kMostFollowers) text += fmt::format("; {} more", count - kMostFollowers);
  return text.empty() ? text : text + ".";
}

std::string OriginText(const NanGraph& first, const NanCall& call) {
  if (call.inputs.empty())
    return " No input of that call held NaN or infinity: they arise in this graph.";
  const bool is_nan = std::any_of(call.inputs.begin(), call.inputs.end(),
                                  [](const NotFiniteTensor& one) { return one.nan_count > 0; });
  return fmt::format(" Of its inputs, {} {} {} already: {} before this {}.",
                     TensorsText(call.inputs, "input"), call.inputs.size() == 1 ? "holds" : "hold",
                     is_nan ? "NaN" : "infinity", is_nan ? "they arise" : "that arises",
                     first.graph.starts_with("backward")
                         ? "graph, in the forward, the loss or code that is not compiled"
                         : "graph, in data, parameters or code that is not compiled");
}

}  // namespace

Result<void> FindNotFinite(FindingContext& context) {
  ASSIGN_OR_RETURN(const std::vector<NanGraph> graphs,
                   FindNanGraphs(context.database, context.job));
  if (graphs.empty()) return {};
  const NanGraph& first = graphs.front();
  ASSIGN_OR_RETURN(const NanCall call, LoadNanCall(context.database, first));
  std::set<RankIndex> ranks;
  bool is_nan_at_end = false;
  for (const NanGraph& graph : graphs) {
    if (IsSameCall(first, graph)) ranks.insert(graph.compile->participant);
    is_nan_at_end |= graph.is_nan_at_end;
  }
  Finding& finding = context.Add(
      FindingKind::kNotFinite, is_nan_at_end ? FindingSeverity::kWarning : FindingSeverity::kNote);
  const std::vector<RankIndex> who(ranks.begin(), ranks.end());
  context.SetRanks(finding, who);
  const std::string where = first.compile->slot >= 0
                                ? context.SetCompiles(finding, {first.compile->slot}, who)
                                : context.Title(*first.compile);
  finding.cause = "NaN in " + first.graph;
  finding.since_us = first.time_us;
  if (!call.file.empty() && call.inputs.empty())
    finding.place = FindingPlace{call.file, call.line, call.code};
  finding.title = fmt::format(
      "The {} graph of {} gives NaN {} {}{}{}", first.graph, where,
      CallText(first).ends_with(" on") ? "from" : "in", CallText(first),
      finding.place ? ", first at " + PlaceText(*finding.place) : "",
      context.AreAll(who) || !context.HasRanks() ? "" : ", on " + context.WhoInside(who));
  finding.detail =
      fmt::format("NaN in {}.{}", TensorsText(call.outputs, "output"), OriginText(first, call));
  if (!is_nan_at_end)
    finding.detail +=
        " The last calls that were looked at hold none, as after steps that a gradient scaler "
        "leaves out.";
  finding.detail += FollowersText(context, first, graphs);
  finding.suggestion =
      call.inputs.empty()
          ? "look at what is divided by, or whose logarithm, root or power is taken there, and at "
            "what overflows the type"
      : first.graph.starts_with("backward")
          ? "look at what gives these inputs: run with torch.autograd.set_detect_anomaly(True), or "
            "compile that code as well"
          : "look at what gives these inputs: check the data and the parameters of that call with "
            "torch.isfinite, or compile the code before it as well";
  finding.query = fmt::format("SELECT * FROM run_digest WHERE record_id = {}", first.record_id);
  return {};
}

}  // namespace tlparse
