// failures_and_restarts.html.
#include "report/tree/failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "queries/report/tree/failures.h"
#include "report/report_context.h"
#include "report/tree/html.h"
#include "report/tree/record_scan.h"
#include "store/database.h"

namespace tlparse {
namespace {

void AppendCell(std::string_view text, FileWriter& out) {
  out.Append("<td><pre>");
  AppendHtmlText(text, out);
  out.Append("</pre></td>");
}

// Restarts have no type of their own in the log.
std::string_view TypeText(std::string_view kind, std::string_view type) {
  if (!type.empty()) return type;
  return kind == "restart" ? "RestartAnalysis" : kind;
}

Result<void> AppendRow(const FailureRow& failure, TextCache& texts, FileWriter& out) {
  ASSIGN_OR_RETURN(const std::string_view kind, texts.Get(failure.kind_id));
  ASSIGN_OR_RETURN(const std::string_view type, texts.Get(failure.type_id));
  ASSIGN_OR_RETURN(const std::string_view reason, texts.Get(failure.reason_id));
  ASSIGN_OR_RETURN(const std::string_view file, texts.Get(failure.user_file_id));
  AppendCell(TypeText(kind, type), out);
  AppendCell(reason, out);
  AppendCell(file.empty() ? std::string() : fmt::format("{}:{}", file, failure.user_line), out);
  return {};
}

}  // namespace

Result<std::vector<FailureRow>> ReadFailures(Database& database, std::int64_t run_id) {
  std::vector<FailureRow> failures;
  FOR_EACH_ROW(const FailureOfRun& row, Query<FailureOfRun>(database, {.run_id = run_id})) {
    failures.push_back(FailureRow{row.record_id, row.process_id, row.compile_id.value_or(0),
                                  row.kind_id, row.type_id.value_or(0), row.reason_id.value_or(0),
                                  row.user_file_id.value_or(0), row.user_line.value_or(0)});
  }
  return failures;
}

std::vector<FailureRow> FailuresOf(const Participant& participant,
                                   const std::vector<FailureRow>& failures) {
  std::vector<FailureRow> own;
  auto at = std::lower_bound(
      failures.begin(), failures.end(), participant.first_record_id,
      [](const FailureRow& failure, std::int64_t id) { return failure.record_id < id; });
  for (; at != failures.end() && at->record_id <= participant.last_record_id; ++at) {
    if (participant.whole_log || participant.Process(at->process_id) != nullptr) {
      own.push_back(*at);
    }
  }
  return own;
}

Result<void> WriteFailures(const ReportContext& context, const TreePlan& plan) {
  std::unordered_map<std::int64_t, const PlannedFile*> pages;  // by record
  for (const PlannedFile& file : plan.files) {
    if (file.form == FileForm::kMetricsPage) pages.emplace(file.record_id, &file);
  }
  ASSIGN_OR_RETURN(TextCache texts, TextCache::Open(context.database));
  FileWriter out;
  RETURN_IF_ERROR(out.Open(context.directory, "failures_and_restarts.html"));
  AppendPageStart("Failures and restarts", out);
  out.Append(
      "<table>\n<tr><th>Compile id</th><th>Failure type</th><th>Failure description</th>"
      "<th>Failure source</th></tr>\n");
  for (const FailureRow& failure : FailuresOf(context.participant, context.failures)) {
    const auto page = pages.find(failure.record_id);
    out.Append("<tr><td>");
    if (page != pages.end()) {
      out.Append(Link(plan.Path(*page->second), plan.keys[page->second->key].key));
    } else {
      ASSIGN_OR_RETURN(
          const FirstRow<LabelOfFailure> compile,
          First(KeptQuery<LabelOfFailure>(context.database, {.id = failure.compile_id})));
      if (compile) AppendHtmlText(compile->label, out);
    }
    out.Append("</td>");
    RETURN_IF_ERROR(AppendRow(failure, texts, out));
    out.Append("</tr>\n");
  }
  out.Append("</table>\n");
  AppendPageEnd(out);
  return out.Close();
}

}  // namespace tlparse
