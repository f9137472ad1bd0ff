#include "facts/text/text_diff.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/plural.h"
#include "facts/text/sequence_diff.h"

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
  if (left_out > 0) text += fmt::format("… {}\n", Count(left_out, "more line"));
  return text;
}

namespace {

std::string OnOneLine(std::string_view text) {
  std::string line;
  for (const char c : Trimmed(text)) {
    const bool is_blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!is_blank) line += c;
    if (is_blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  return line;
}

bool IsInWord(char c) { return IsNameCharacter(c) || c == '.'; }

// How many characters are equal at the beginning and at the end; no word is divided.
struct EqualEnds {
  std::size_t head = 0, tail = 0;
};

EqualEnds FindEqualEnds(std::string_view a, std::string_view b) {
  EqualEnds ends;
  const std::size_t shorter = std::min(a.size(), b.size());
  while (ends.head < shorter && a[ends.head] == b[ends.head]) ++ends.head;
  while (ends.head > 0 && IsInWord(a[ends.head - 1])) --ends.head;
  while (ends.tail < shorter - ends.head &&
         a[a.size() - 1 - ends.tail] == b[b.size() - 1 - ends.tail])
    ++ends.tail;
  while (ends.tail > 0 && IsInWord(a[a.size() - ends.tail])) --ends.tail;
  return ends;
}

// Whether `text` ends inside of a bracket.
bool EndsInBracket(std::string_view text) {
  int depth = 0;
  for (const char c : text) {
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
  }
  return depth > 0;
}

// The part of a text from `begin`, with some of what is before it.
std::string Around(std::string_view text, std::size_t begin, std::size_t size) {
  constexpr std::size_t kBefore = 24;
  std::size_t from = begin > kBefore ? begin - kBefore : 0;
  while (from > 0 && from < begin && IsInWord(text[from - 1])) ++from;
  std::size_t end = std::min(text.size(), from + size);
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;
  return fmt::format("{}{}{}", from > 0 ? "…" : "", text.substr(from, end - from),
                     end < text.size() ? "…" : "");
}

}  // namespace

std::string ChangeText(std::string_view a_text, std::string_view b_text, std::size_t size) {
  const std::string a = OnOneLine(a_text), b = OnOneLine(b_text);
  const EqualEnds ends = FindEqualEnds(a, b);
  const std::string_view head = std::string_view(a).substr(0, ends.head);
  const std::string_view tail = std::string_view(a).substr(a.size() - ends.tail);
  const std::string_view old_part(a.data() + ends.head, a.size() - ends.head - ends.tail);
  const std::string_view new_part(b.data() + ends.head, b.size() - ends.head - ends.tail);
  // One argument of a call, or one annotation "name: type".
  const auto is_one = [](std::string_view part) {
    return !part.empty() && part.find_first_of(",;:()[]{}") == std::string_view::npos;
  };
  const bool is_argument = EndsInBracket(head) && is_one(old_part) && is_one(new_part) &&
                           (tail.starts_with(',') || tail.starts_with(')'));
  if (is_argument && a.size() + new_part.size() <= 2 * size)
    return fmt::format("{}{} → {}{}", head, old_part, new_part, tail);
  if (a.size() <= size && b.size() <= size) return fmt::format("{} → {}", a, b);
  return fmt::format("{} → {}", Around(a, ends.head, size), Around(b, ends.head, size));
}

std::string WithoutDeletions(std::string_view text) {
  std::string result;
  for (std::string_view line : SplitLines(text)) {
    constexpr std::string_view kBegin = ";  ";
    const std::size_t at = line.rfind(kBegin);
    if (at != std::string_view::npos && line.ends_with(" = None")) line = line.substr(0, at);
    result.append(line).append("\n");
  }
  return result;
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

// The parameters of "def forward(self, L_x_: "f32[8, 16]cpu", s0: "Sym(s0)"):", by name.
std::vector<std::pair<std::string, std::string>> Parameters(std::string_view line) {
  std::vector<std::pair<std::string, std::string>> parameters;
  constexpr std::string_view kType = ": \"";
  for (std::size_t colon = line.find(kType); colon != std::string_view::npos;
       colon = line.find(kType, colon)) {
    const std::size_t begin = line.find_last_of(" (,*", colon) + 1;  // 0: none
    const std::size_t end = line.find('"', colon + kType.size());
    if (end == std::string_view::npos) break;
    parameters.emplace_back(line.substr(begin, colon - begin),
                            line.substr(colon + kType.size(), end - colon - kType.size()));
    colon = end;
  }
  return parameters;
}

// Of two lines that define a graph: the first parameter of both with another annotation.
std::optional<std::pair<std::string, std::string>> DifferingParameter(std::string_view a,
                                                                      std::string_view b) {
  constexpr std::string_view kPythonDefinition = "def ";
  if (!a.starts_with(kPythonDefinition) || !b.starts_with(kPythonDefinition)) return std::nullopt;
  const auto others = Parameters(b);
  for (const auto& [name, type] : Parameters(a)) {
    const auto other =
        std::find_if(others.begin(), others.end(),
                     [&wanted = name](const auto& one) { return one.first == wanted; });
    if (other != others.end() && other->second != type)
      return std::pair(fmt::format("{}: {}", name, type),
                       fmt::format("{}: {}", name, other->second));
  }
  return std::nullopt;
}

}  // namespace

std::pair<std::string, std::string> DifferingAnnotations(std::string_view a, std::string_view b) {
  if (auto parameter = DifferingParameter(a, b)) return *std::move(parameter);
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
