// Traces of make_fx that failed outside of compiles, as those of torch.export: the log has the graph
// so far and no exception.
#include "queries/findings/trace_failures.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/ascii.h"
#include "findings/context.h"

namespace tlparse {
namespace {

// "# File: /a/b.py:26 in forward, code: if good.sum() < 3:", the last of a graph; line 0: none.
FindingPlace LastPlaceOf(std::string_view graph) {
  constexpr std::string_view kFile = "# File: ", kCode = ", code: ";
  FindingPlace place;
  const std::size_t at = graph.rfind(kFile);
  if (at == std::string_view::npos) return place;
  std::string_view line = graph.substr(at + kFile.size());
  line = line.substr(0, line.find('\n'));
  if (const std::size_t code = line.find(kCode); code != std::string_view::npos)
    place.code = Trimmed(line.substr(code + kCode.size()));
  line = line.substr(0, line.find(" in "));
  const std::size_t colon = line.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == line.size() || line.size() - colon > 10)
    return {};
  for (const char c : line.substr(colon + 1)) {
    if (!IsDigit(c)) return {};
    place.line = place.line * 10 + (c - '0');
  }
  place.file = line.substr(0, colon);
  return place;
}

struct FailedTrace {
  std::set<RankIndex> who;
  std::vector<std::int64_t> ids;
  FindingPlace place;
  std::optional<std::int64_t> since_us;
};

}  // namespace

Result<void> FindFailedTraces(FindingContext& context) {
  std::map<std::pair<std::string, std::int64_t>, FailedTrace> traces;  // by place
  FOR_EACH_ROW(const FailedMakeFx& row,
               Query<FailedMakeFx>(context.database, {.in_logs = context.job.InLogs("r.id")})) {
    const RankIndex participant = context.job.ParticipantOfProcess(row.process_id);
    if (participant < 0) continue;
    FindingPlace place = LastPlaceOf(row.content.value_or(std::string_view()));
    FailedTrace& trace = traces[{place.file, place.line}];
    trace.who.insert(participant);
    trace.ids.push_back(row.id);
    if (!trace.since_us) trace.since_us = row.time_us;
    trace.place = std::move(place);
  }
  for (auto& [key, trace] : traces) {
    Finding& finding = context.Add(FindingKind::kCompileFailed, FindingSeverity::kWarning);
    const std::vector<RankIndex> who(trace.who.begin(), trace.who.end());
    context.SetRanks(finding, who);
    const bool is_of_all = who.size() == context.job.participants().size();
    finding.title = fmt::format(
        "A trace of make_fx failed{}{}; the log names no exception",
        is_of_all ? "" : (context.HasRanks() ? " on " : " in ") + context.WhoInside(who),
        trace.place.line > 0 ? " after " + PlaceText(trace.place) : "");
    finding.cause = kMakeFxFailed;
    finding.detail =
        "It belongs to no compile of Dynamo, as a trace of torch.export does not. The log has the "
        "graph as "
        "far as it was traced; what the program did about the exception is not in it.";
    finding.since_us = trace.since_us;
    if (trace.place.line > 0) finding.place = std::move(trace.place);
    finding.query = fmt::format("SELECT * FROM failure WHERE record_id IN {}", IdList(trace.ids));
  }
  return {};
}

}  // namespace tlparse
