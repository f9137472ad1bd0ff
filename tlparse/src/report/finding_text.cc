#include "report/finding_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/plural.h"
#include "base/printable.h"

namespace tlparse {

std::string MarkdownText(std::string_view text) {
  std::string result;
  for (const char c : Printable(text)) {
    if (std::string_view("\\`*_{}[]<>#|~&").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string MarkdownBlock(std::string_view lines) {
  std::size_t ticks = 0, most = 0;
  for (const char c : lines) most = std::max(most, ticks = c == '`' ? ticks + 1 : 0);
  const std::string fence(std::max<std::size_t>(3, most + 1), '`');
  return fmt::format("{}text\n{}{}{}\n", fence, lines, lines.ends_with('\n') ? "" : "\n", fence);
}

std::string FindingsHeading(std::string_view run_name, std::int64_t launch,
                            std::size_t launch_count, std::size_t finding_count) {
  const std::string which =
      launch_count > 1 ? fmt::format(", launch {} of {}", launch, launch_count) : "";
  return fmt::format("run {}{}: {} finding{}", run_name, which, finding_count,
                     PluralS(finding_count));
}

std::string PlaceLine(const FindingPlace& place) {
  std::string text = place.file;
  if (place.line > 0) text += fmt::format(":{}", place.line);
  if (!place.code.empty()) text += "  " + place.code;
  return text;
}

std::string TryText(const Finding& finding) {
  std::string text = finding.suggestion;
  if (finding.suggestion.empty()) text = TextOf(finding.changes);
  if (!finding.experiment) return text;
  // A hint of PyTorch ends with a full stop; a clause follows.
  if (text.ends_with('.')) text.pop_back();
  const FindingExperiment& done = *finding.experiment;
  const std::string_view verdict = Name(done.verdict);
  // What came of these is in no other word.
  const bool has_reason = done.is_check || verdict == "changed" || verdict == "inconclusive";
  text += text.empty() ? "" : "; ";
  if (!has_reason) return text + fmt::format("{} by experiment {}", verdict, done.id);
  return text + fmt::format("experiment {}: {}{}", done.id,
                            verdict == "inconclusive" ? "inconclusive, " : "", done.reason);
}

std::string FindingMarkdown(const Finding& finding) {
  std::string text =
      fmt::format("- **{}**: {}", Name(finding.severity), MarkdownText(finding.title));
  if (finding.place) text += fmt::format("\n  - at {}", MarkdownText(PlaceLine(*finding.place)));
  if (!finding.detail.empty()) text += fmt::format("\n  - {}", MarkdownText(finding.detail));
  if (const std::string to_try = TryText(finding); !to_try.empty())
    text += fmt::format("\n  - try: {}", MarkdownText(to_try));
  for (const Finding& one : finding.evidence)
    text += fmt::format("\n  - also: {}", MarkdownText(one.title));
  return text + '\n';
}

std::string FindingsMarkdownHeading(const std::string& heading, bool has_findings) {
  return fmt::format("**{}**\n\n{}", MarkdownText(heading), has_findings ? "" : "No findings.\n");
}

std::string FindingsMarkdown(const std::vector<Finding>& findings, const std::string& heading) {
  std::string text = FindingsMarkdownHeading(heading, !findings.empty());
  for (const Finding& finding : findings) text += FindingMarkdown(finding);
  return text;
}

}  // namespace tlparse
