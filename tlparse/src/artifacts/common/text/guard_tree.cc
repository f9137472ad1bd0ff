#include "artifacts/common/text/guard_tree.h"

#include <charconv>

#include "artifacts/common/text/python_traceback.h"
#include "artifacts/common/text/quotes.h"

namespace tlparse {

namespace {

constexpr std::string_view kComment = "  # ";

// Where the first comment begins outside of quotes; npos if there is none. A quote that is never
// closed (an apostrophe in the source line) does not count.
std::size_t FindComment(std::string_view text) {
  QuoteScanner quotes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (quotes.IsInString(text, at)) continue;
    if (text[at] == ' ' && text.substr(at, kComment.size()) == kComment) return at;
  }
  return quotes.is_open() ? text.find(kComment) : std::string_view::npos;
}

// "nn/modules/linear.py:134 in forward (HINT: type MLP)"; of a guard on a size that an operation asked for,
// "train.py:12 in step (_dynamo/variables/tensor.py:2849 in evaluate_expr)": the user's line, and that of PyTorch.
bool ParsePlace(std::string_view text, GuardLine& line) {
  std::string_view hint;
  constexpr std::string_view kHint = " (HINT: ";
  if (const std::size_t at = text.find(kHint);
      at != std::string_view::npos && text.ends_with(')')) {
    hint = text.substr(at + kHint.size(), text.size() - at - kHint.size() - 1);
    text = text.substr(0, at);
  }
  if (text.ends_with(')')) text = text.substr(0, text.rfind(" ("));
  const std::size_t in = text.rfind(" in ");
  if (in == std::string_view::npos) return false;
  const std::size_t colon = text.rfind(':', in);
  if (colon == std::string_view::npos) return false;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + colon + 1, text.data() + in, number);
  if (error != std::errc() || end != text.data() + in) return false;
  line.user_file = text.substr(0, colon);
  line.user_line = number;
  line.user_function = text.substr(in + 4);
  line.hint = hint;
  return true;
}

// "source=L['x'], accessed_by=…, type=…" → L['x']
std::string_view SourceOf(std::string_view expression) {
  constexpr std::string_view kSource = "source=";
  const std::size_t begin = expression.find(kSource);
  if (begin == std::string_view::npos) return {};
  expression.remove_prefix(begin + kSource.size());
  std::size_t end = expression.find(", accessed_by=");
  if (end == std::string_view::npos) end = expression.find(", type=<");
  return TrimEnd(expression.substr(0, end));
}

bool IsManager(std::string_view kind) { return kind.ends_with("Manager"); }

// The text from the start of `first` to the end of `last`, both views of one text.
std::string_view Span(std::string_view first, std::string_view last) {
  return {first.data(), static_cast<std::size_t>(last.data() + last.size() - first.data())};
}

}  // namespace

void ParseGuardComment(std::string_view text, GuardLine& line) {
  const std::size_t first = FindComment(text);
  if (first == std::string_view::npos) {
    line.expression = TrimEnd(text);
    return;
  }
  const std::size_t last = text.rfind(kComment);
  line.expression = TrimEnd(text.substr(0, first));
  if (!ParsePlace(TrimEnd(text.substr(last + kComment.size())), line)) {
    line.user_code = TrimEnd(text.substr(first + kComment.size()));
  } else if (last > first) {
    line.user_code = TrimEnd(text.substr(first + kComment.size(), last - first - kComment.size()));
  }
}

std::vector<GuardLine> ParseGuardTree(std::string_view text) {
  std::vector<GuardLine> lines;
  std::vector<std::string_view> rests;  // of each line, behind the kind
  while (!text.empty()) {
    std::string_view line = NextLine(text);
    std::size_t depth = 0;
    while (line.substr(2 * depth, 2) == "| ") ++depth;
    const std::string_view rest = line.substr(2 * depth);
    if (!rest.starts_with("+- ")) {
      // A check that spans lines continues; blank lines and the latency end the tree.
      if (!lines.empty() && !TrimEnd(line).empty() && !line.starts_with("Guard latency = ") &&
          !line.starts_with("TREE_GUARD_MANAGER")) {
        rests.back() = Span(rests.back().data() == nullptr ? line : rests.back(), line);
      }
      continue;
    }
    GuardLine guard;
    guard.depth = depth;
    const std::string_view body = rest.substr(3);
    const std::size_t colon = body.find(": ");
    const std::size_t blank = body.find(' ');
    // "KeyValueManager pair at index=0" has no colon.
    const std::size_t end =
        colon != std::string_view::npos && (blank == std::string_view::npos || colon < blank)
            ? colon
            : blank;
    guard.kind = TrimEnd(body.substr(0, end));
    const std::size_t skip =
        end == std::string_view::npos ? body.size() : end + (end == colon ? 2 : 1);
    lines.push_back(guard);
    rests.push_back(body.substr(skip));
  }
  std::vector<std::string_view> sources;  // by depth: of the managers above
  for (std::size_t index = 0; index < lines.size(); ++index) {
    GuardLine& line = lines[index];
    // A depth that no parent has: damage; the line hangs on the deepest one there is.
    if (line.depth < sources.size()) sources.resize(line.depth);
    const std::string_view above = sources.empty() ? std::string_view() : sources.back();
    if (IsManager(line.kind)) {
      line.expression = TrimEnd(rests[index]);
      const std::string_view own = SourceOf(rests[index]);
      line.source = own.empty() ? above : own;
    } else {
      ParseGuardComment(rests[index], line);
      line.source = above;
    }
    while (sources.size() <= line.depth && sources.size() < 4096) sources.push_back(line.source);
  }
  return lines;
}

}  // namespace tlparse
