#include "cli/finding_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/rank_output.h"
#include "cli/terminal.h"
#include "facts/job/participants.h"
#include "report/finding_text.h"

namespace tlparse {
namespace {

Style StyleOf(FindingSeverity severity) {
  return severity == FindingSeverity::kError     ? Style::kRed
         : severity == FindingSeverity::kWarning ? Style::kYellow
                                                 : Style::kDim;
}

void WriteLines(JsonWriter& json, const std::vector<EvidenceLine>& lines) {
  json.Key("log_lines").BeginArray();
  for (const EvidenceLine& line : lines) {
    json.BeginObject().Key("table").String(line.row.table).Key("id").Int(line.row.id);
    json.Key("file").String(line.file).Key("line").OptionalInt(line.line);
    json.Key("byte_offset").OptionalInt(line.byte_offset);
    json.Key("record").OptionalString(NonEmpty(line.record)).Key("text").String(line.text);
    json.EndObject();
  }
  json.EndArray();
}

void PrintLines(const std::vector<EvidenceLine>& lines) {
  constexpr std::size_t kMost = 3;
  for (std::size_t i = 0; i < std::min(lines.size(), kMost); ++i) {
    const EvidenceLine& line = lines[i];
    std::string where = line.file.substr(line.file.rfind('/') + 1);
    if (line.line) where += fmt::format(":{}", *line.line);
    if (!line.record.empty()) where += fmt::format(" ({})", line.record);
    PrintWrapped(fmt::format("{}: {}", where, line.text), 6, 8, Style::kDim);
  }
  if (lines.size() > kMost)
    PrintWrapped(fmt::format("and {} more lines (--json)", lines.size() - kMost), 6, 8);
}

}  // namespace

Result<LinesOfFindings> FindLines(Database& database, const std::vector<Finding>& findings) {
  LinesOfFindings lines;
  for (const Finding& finding : findings) {
    ASSIGN_OR_RETURN(lines[&finding], EvidenceOf(database, finding));
    ASSIGN_OR_RETURN(LinesOfFindings more, FindLines(database, finding.evidence));
    lines.merge(more);
  }
  return lines;
}

void WriteFinding(JsonWriter& json, const Finding& finding, const LinesOfFindings* lines) {
  json.BeginObject().Key("id").String(finding.id).Key("kind").String(Name(finding.kind));
  json.Key("severity").String(Name(finding.severity)).Key("title").String(finding.title);
  json.Key("detail").String(finding.detail).Key("launch").OptionalInt(finding.launch);
  json.Key("ranks").BeginArray();
  for (const std::int64_t rank : finding.ranks) json.Int(rank);
  json.EndArray().Key("rank_count").Int(static_cast<std::int64_t>(finding.rank_count));
  json.Key("roles");
  WriteStrings(json, finding.roles);
  json.Key("logs");
  WriteStrings(json, finding.logs);
  json.Key("compiles");
  WriteStrings(json, finding.compiles);
  json.Key("since_us").OptionalInt(finding.since_us).Key("place");
  if (finding.place) {
    json.BeginObject().Key("file").String(finding.place->file);
    json.Key("line").OptionalInt(finding.place->line > 0 ? std::optional(finding.place->line)
                                                         : std::nullopt);
    json.Key("code").OptionalString(NonEmpty(finding.place->code)).EndObject();
  } else {
    json.Null();
  }
  json.Key("cause").OptionalString(NonEmpty(finding.cause));
  json.Key("try").OptionalString(NonEmpty(finding.suggestion)).Key("changes");
  WriteChanges(json, finding.changes);
  json.Key("experiment");
  if (finding.experiment) {
    json.BeginObject().Key("id").Int(finding.experiment->id);
    json.Key("verdict").String(Name(finding.experiment->verdict));
    json.Key("reason").String(finding.experiment->reason).EndObject();
  } else {
    json.Null();
  }
  json.Key("evidence");
  WriteFindings(json, finding.evidence, lines);
  json.Key("query").String(finding.query).Key("rows").BeginArray();
  for (const FindingRow& row : finding.rows)
    json.BeginObject().Key("table").String(row.table).Key("id").Int(row.id).EndObject();
  json.EndArray().Key("row_count").Int(static_cast<std::int64_t>(finding.row_count));
  json.Key("has_more_rows").Bool(finding.has_more_rows);
  if (lines != nullptr) WriteLines(json, lines->at(&finding));
  json.EndObject();
}

void WriteFindings(JsonWriter& json, const std::vector<Finding>& findings,
                   const LinesOfFindings* lines) {
  json.BeginArray();
  for (const Finding& finding : findings) WriteFinding(json, finding, lines);
  json.EndArray();
}

void PrintFindings(const std::vector<Finding>& findings, const LinesOfFindings* lines) {
  for (const Finding& finding : findings) {
    PrintWrapped(fmt::format("{}: {}", Name(finding.severity), finding.title), 0, 2,
                 StyleOf(finding.severity));
    if (finding.place) PrintWrapped("at " + PlaceLine(*finding.place), 4, 6);
    if (!finding.detail.empty()) PrintWrapped(finding.detail, 4, 6);
    if (const std::string to_try = TryText(finding); !to_try.empty())
      PrintWrapped("try: " + to_try, 4, 6);
    if (lines != nullptr) PrintLines(lines->at(&finding));
    constexpr std::size_t kMost = 5;
    const std::size_t most = std::min(finding.evidence.size(), kMost);
    for (std::size_t i = 0; i < most; ++i) {
      PrintWrapped("also: " + finding.evidence[i].title, 4, 6);
      if (lines != nullptr) PrintLines(lines->at(&finding.evidence[i]));
    }
    if (most < finding.evidence.size())
      PrintWrapped(fmt::format("and {} more of it (--json)", finding.evidence.size() - most), 4, 6);
  }
}

void PrintTopFindings(const std::vector<Finding>& findings, std::size_t most,
                      const std::string& database) {
  const std::size_t count = std::min(most, findings.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::fprintf(stderr, "%s: %s\n", std::string(Name(findings[i].severity)).c_str(),
                 Printable(findings[i].title).c_str());
  }
  if (count < findings.size()) {
    std::fprintf(stderr, "and %zu more: tlparse findings %s\n", findings.size() - count,
                 Printable(database).c_str());
  }
}

}  // namespace tlparse
