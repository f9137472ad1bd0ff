#include "cli/finding_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <utility>

#include "answers/evidence/evidence.h"
#include "answers/evidence/looked_for.h"
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

using InputsByLaunch = std::map<std::int64_t, LookedForInputs>;

Result<void> AddLinesTo(Database& database, std::int64_t run_id, std::int64_t launch,
                        InputsByLaunch& inputs, std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    ASSIGN_OR_RETURN(finding.lines, EvidenceOf(database, finding));
    const std::int64_t own_launch = finding.launch.value_or(launch);
    auto known = inputs.find(own_launch);
    if (known == inputs.end()) {
      ASSIGN_OR_RETURN(LookedForInputs loaded, LookedForInputs::Load(database, run_id, own_launch));
      known = inputs.emplace(own_launch, std::move(loaded)).first;
    }
    finding.looked_for = known->second.Of(finding);
    RETURN_IF_ERROR(AddLinesTo(database, run_id, own_launch, inputs, finding.evidence));
  }
  return {};
}

}  // namespace

Result<void> AddLines(Database& database, const std::string& run, std::int64_t launch,
                      std::vector<Finding>& findings) {
  ASSIGN_OR_RETURN(const std::int64_t run_id, FindRun(database, run));
  InputsByLaunch inputs;
  return AddLinesTo(database, run_id, launch, inputs, findings);
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
    const std::string not_found =
        finding.looked_for ? NotFoundText(*finding.looked_for) : std::string();
    if (!not_found.empty()) PrintWrapped(not_found, 6, 8, Style::kDim);
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

std::string CountBySeverity(std::span<const Finding> findings) {
  std::string text;
  for (const FindingSeverity severity :
       {FindingSeverity::kError, FindingSeverity::kWarning, FindingSeverity::kNote}) {
    const auto count = static_cast<std::size_t>(
        std::count_if(findings.begin(), findings.end(),
                      [&](const Finding& one) { return one.severity == severity; }));
    if (count > 0) text += (text.empty() ? "" : ", ") + Count(count, Name(severity));
  }
  return text;
}

namespace {

bool NamesAsked(const Finding& finding, const AskedNames& names) {
  const auto is_of = [](const auto& all, const auto& some) {
    return std::any_of(some.begin(), some.end(), [&](const auto& one) {
      return std::find(all.begin(), all.end(), one) != all.end();
    });
  };
  return is_of(finding.ranks, names.ranks) || is_of(finding.logs, names.logs) ||
         std::any_of(finding.evidence.begin(), finding.evidence.end(),
                     [&](const Finding& one) { return NamesAsked(one, names); });
}

}  // namespace

Result<std::string> KeepNamed(Database& database, const AskedParticipant& asked,
                              const std::string& run, const std::optional<std::int64_t>& launch,
                              std::vector<Finding>& findings) {
  if (!asked.IsGiven()) return std::string();
  ASSIGN_OR_RETURN(const ChosenLaunch chosen, ChooseLaunch(database, run, launch));
  ASSIGN_OR_RETURN(const AskedNames names,
                   NamesOfAsked(database, asked, chosen.run_id, chosen.ordinal));
  const auto end = std::stable_partition(findings.begin(), findings.end(), [&](const Finding& one) {
    return (one.ranks.empty() && one.logs.empty()) || NamesAsked(one, names);
  });
  const std::vector<Finding> left_out(std::make_move_iterator(end),
                                      std::make_move_iterator(findings.end()));
  findings.erase(end, findings.end());
  if (std::none_of(findings.begin(), findings.end(),
                   [&](const Finding& one) { return NamesAsked(one, names); }))
    RETURN_IF_ERROR(CheckAsked(database, asked, chosen.run_id, chosen.ordinal));
  return fmt::format(
      "only what involves {}{}", asked.Text(),
      left_out.empty() ? std::string()
                       : fmt::format("; left out: {} whose cause lies in others ({})",
                                     Count(left_out.size(), "finding"), CountBySeverity(left_out)));
}

}  // namespace tlparse
