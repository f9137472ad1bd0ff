#include "analysis/diff/text_diff.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/diff/sequence_diff.h"
#include "base/ascii.h"

namespace tlparse {

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string UnifiedDiff(std::string_view a, std::string_view b, std::string_view a_name,
                        std::string_view b_name, std::size_t context_lines, std::size_t max_lines) {
  if (a == b) return {};
  const std::vector<std::string_view> old_lines = SplitLines(a);
  const std::vector<std::string_view> new_lines = SplitLines(b);
  const std::vector<EditStep> script =
      AlignSequences(old_lines.size(), new_lines.size(),
                     [&](std::size_t i, std::size_t j) { return old_lines[i] == new_lines[j]; });
  std::string text = fmt::format("--- {}\n+++ {}\n", a_name, b_name);
  std::size_t line_count = 2, left_out = 0;
  for (std::size_t i = 0; i < script.size();) {
    if (script[i].kind == EditStep::Kind::kKeep) {
      ++i;
      continue;
    }
    // A hunk: from `context_lines` before to as many after, joined with the next one if they touch.
    const std::size_t begin = i - std::min(i, context_lines);
    std::size_t end = i, last = i;
    while (end < script.size() && end <= last + 2 * context_lines) {
      if (script[end].kind != EditStep::Kind::kKeep) last = end;
      ++end;
    }
    end = std::min(script.size(), last + context_lines + 1);
    std::size_t old_count = 0, new_count = 0;
    std::string body;
    std::size_t body_lines = 0;
    for (std::size_t j = begin; j < end; ++j, ++body_lines) {
      const EditStep& step = script[j];
      const bool deleted = step.kind == EditStep::Kind::kDelete;
      const bool inserted = step.kind == EditStep::Kind::kInsert;
      if (!inserted) ++old_count;
      if (!deleted) ++new_count;
      if (line_count + body_lines >= max_lines) continue;
      body += deleted ? '-' : inserted ? '+' : ' ';
      body += inserted ? new_lines[step.b] : old_lines[step.a];
      body += '\n';
    }
    const std::size_t shown = std::min(body_lines, max_lines - std::min(max_lines, line_count));
    if (shown > 0) {
      text += fmt::format("@@ -{},{} +{},{} @@\n", script[begin].a + (old_count > 0), old_count,
                          script[begin].b + (new_count > 0), new_count);
      text += body;
      line_count += shown + 1;
    }
    left_out += body_lines - shown;
    i = end;
  }
  if (left_out > 0) text += fmt::format("… {} more lines\n", left_out);
  return text;
}

std::optional<FirstDifference> FindFirstDifference(std::string_view a, std::string_view b) {
  const std::vector<std::string_view> old_lines = SplitLines(a);
  const std::vector<std::string_view> new_lines = SplitLines(b);
  const std::size_t both = std::min(old_lines.size(), new_lines.size());
  std::size_t line = 0;
  while (line < both && old_lines[line] == new_lines[line]) ++line;
  if (line == both && old_lines.size() == new_lines.size()) return std::nullopt;
  FirstDifference difference{line + 1, line + 1, {}, {}};
  if (line < old_lines.size()) difference.a = Trimmed(old_lines[line]);
  if (line < new_lines.size()) difference.b = Trimmed(new_lines[line]);
  return difference;
}

namespace {

// The annotated name around a place of a line; empty: it is in none.
std::string AnnotationAt(std::string_view line, std::size_t place) {
  const std::size_t colon = line.rfind(": \"", place);
  const std::size_t end = line.find('"', place);
  if (colon == std::string_view::npos || end == std::string_view::npos || colon + 3 > place ||
      line.substr(colon + 3, place - colon - 3).find('"') != std::string_view::npos)
    return {};
  const std::size_t before = line.find_last_of(" (,*", colon);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return fmt::format("{} {}", line.substr(begin, colon + 1 - begin),
                     line.substr(colon + 3, end - colon - 3));
}

}  // namespace

std::pair<std::string, std::string> DifferingAnnotations(std::string_view a, std::string_view b) {
  const auto place = static_cast<std::size_t>(
      std::mismatch(a.begin(),
                    a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())),
                    b.begin())
          .first -
      a.begin());
  std::string a_part = AnnotationAt(a, place), b_part = AnnotationAt(b, place);
  if (a_part.empty() || b_part.empty() || a_part == b_part) return {std::string(a), std::string(b)};
  return {std::move(a_part), std::move(b_part)};
}

}  // namespace tlparse
