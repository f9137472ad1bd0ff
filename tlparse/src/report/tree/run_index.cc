// index.html above the directories of several logs.
#include <fmt/format.h>

#include "base/plural.h"
#include "report/tree/file_name.h"
#include "report/tree/html.h"
#include "report/tree/rank_aggregates.h"

namespace tlparse {
namespace {

struct Aggregate {
  std::string_view name;
  std::string_view what;
  bool is_there;
};

void AppendAggregates(const std::vector<AggregateFacts>& facts, bool with_profile,
                      FileWriter& out) {
  bool has_schedules = false;
  bool has_estimates = false;
  for (const AggregateFacts& one : facts) {
    has_schedules |= !one.schedules.empty();
    has_estimates |= !one.estimates.empty();
  }
  const Aggregate aggregates[] = {
      {"chromium_events.json", "timeline of all logs; pid is the rank",
       !facts.empty() || with_profile},
      {"collective_schedules.json", "planned collectives of every graph", has_schedules},
      {"runtime_estimations.json", "estimated runtime of every op", has_estimates},
      {"chromium_trace_with_runtime.json", "the same as a timeline", has_estimates},
  };
  out.Append("<ul>\n");
  for (const Aggregate& aggregate : aggregates) {
    if (!aggregate.is_there) continue;
    out.Append(
        fmt::format("<li>{}: {}</li>\n", Link(aggregate.name, aggregate.name), aggregate.what));
  }
  out.Append("</ul>\n");
}

}  // namespace

Result<void> WriteRunIndex(const Directory& root, const ReportOptions& options,
                           const std::vector<Participant>& participants,
                           const std::vector<AggregateFacts>& facts, std::int64_t left_out) {
  FileWriter out;
  RETURN_IF_ERROR(out.Open(root, options.root_index_name));
  AppendPageStart("PyTorch compile report: " + Count(participants.size(), "log"),
                  options.custom_header_html, out);
  if (left_out > 0)
    out.Append(
        fmt::format("<p>{} more ranks, of logs with more than 1024 ranks, have no files here; "
                    "their records are in trace.db.</p>\n",
                    left_out));
  AppendAggregates(facts, options.with_profile, out);
  out.Append(
      "<table>\n<tr><th>Log</th><th>Compile directories</th><th>Files</th>"
      "<th>Failures and restarts</th><th>Path</th></tr>\n");
  for (std::size_t i = 0; i < participants.size(); ++i) {
    const Participant& participant = participants[i];
    const std::string& directory = participant.directory;
    out.Append(fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        Link(directory + "/index.html", participant.title), facts[i].compiles, facts[i].files,
        Link(directory + "/failures_and_restarts.html", std::to_string(facts[i].failures)),
        Html(participant.log_path)));
  }
  out.Append("</table>\n");
  AppendPageEnd(out);
  return out.Close();
}

}  // namespace tlparse
