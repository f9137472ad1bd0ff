#include "cli/finding_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "answers/evidence/evidence.h"
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
    PrintWrapped(fmt::format("and {} (--json)", Count(lines.size() - kMost, "more line")), 6, 8);
}

}  // namespace

Result<void> AddLines(Database& database, std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    ASSIGN_OR_RETURN(finding.lines, EvidenceOf(database, finding));
    RETURN_IF_ERROR(AddLines(database, finding.evidence));
  }
  return {};
}

void PrintFindings(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    PrintWrapped(fmt::format("{}: {}", Name(finding.severity), finding.title), 0, 2,
                 StyleOf(finding.severity));
    if (finding.place) PrintWrapped("at " + PlaceLine(*finding.place), 4, 6);
    if (!finding.detail.empty()) PrintWrapped(finding.detail, 4, 6);
    if (const std::string to_try = TryText(finding); !to_try.empty())
      PrintWrapped("try: " + to_try, 4, 6);
    if (finding.lines) PrintLines(*finding.lines);
    constexpr std::size_t kMost = 5;
    const std::size_t most = std::min(finding.evidence.size(), kMost);
    for (std::size_t i = 0; i < most; ++i) {
      PrintWrapped("also: " + finding.evidence[i].title, 4, 6);
      if (finding.evidence[i].lines) PrintLines(*finding.evidence[i].lines);
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
