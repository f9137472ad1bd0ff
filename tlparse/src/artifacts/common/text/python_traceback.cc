#include "artifacts/common/text/python_traceback.h"

#include <charconv>

#include "base/ascii.h"

namespace tlparse {

namespace {

constexpr std::string_view kTraceback = "Traceback (most recent call last):";
constexpr std::string_view kDuringHandling =
    "During handling of the above exception, another exception occurred:";
constexpr std::string_view kDirectCause =
    "The above exception was the direct cause of the following exception:";
constexpr std::string_view kFromUserCode = "from user code:";

bool IsTypeCharacter(char c) { return IsNameCharacter(c) || c == '.'; }

// Where the last traceback of a chain begins, and where that one does and ends from which it was raised
// ("raise … from …", any number of times); npos: there is none. A traceback counts when it is the first
// one or follows one of the two sentences: a message may quote other tracebacks.
struct Chain {
  std::size_t last = std::string_view::npos, root = last, root_end = last;
};

Chain FindTracebacks(std::string_view text) {
  Chain found;
  bool may_begin = true, is_from = false;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t begin = text.size() - rest.size();
    const std::string_view line = NextLine(rest);
    if (line == kTraceback) {
      if (may_begin && !is_from) found.root = begin, found.root_end = std::string_view::npos;
      if (may_begin) found.last = begin;
      may_begin = false;
    } else if (line == kDuringHandling || line == kDirectCause) {
      may_begin = true;
      is_from = line == kDirectCause && found.last != std::string_view::npos;
      if (found.root_end == std::string_view::npos) found.root_end = begin;
    } else if (!line.empty() && found.last != std::string_view::npos) {
      may_begin = false;
    }
  }
  return found;
}

// Inductor names what it generates after its hash: c, then 51 base32 characters.
bool IsGeneratedFile(std::string_view file) {
  constexpr std::size_t kStemLength = 52;
  const std::string_view name = file.substr(file.find_last_of("/\\") + 1);
  return name.size() == kStemLength + 3 && name.ends_with(".py") &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567") == kStemLength;
}

}  // namespace

std::string_view NextLine(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view TrimEnd(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

std::optional<PythonFrame> ParseFrameLine(std::string_view line) {
  constexpr std::string_view kFile = "File \"";
  constexpr std::string_view kLine = "\", line ";
  constexpr std::string_view kIn = ", in ";
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos || line.substr(begin, kFile.size()) != kFile)
    return std::nullopt;
  line.remove_prefix(begin + kFile.size());
  const std::size_t quote = line.find(kLine);
  if (quote == std::string_view::npos) return std::nullopt;
  PythonFrame frame;
  frame.file = line.substr(0, quote);
  line.remove_prefix(quote + kLine.size());
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), frame.line);
  if (error != std::errc()) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (line.substr(0, kIn.size()) == kIn) frame.function = line.substr(kIn.size());
  return frame;
}

bool IsUserFile(std::string_view file) {
  if (file.starts_with("<ipython-input-") || file == "<stdin>") return true;  // typed by the user
  if (file.empty() || file[0] == '<' || file.starts_with("torch/")) return false;
  for (std::string_view part : {"/site-packages/", "/dist-packages/", "/torch/_", "/lib/python3",
                                "\\site-packages\\", "\\Lib\\", "/hook/sitecustomize.py"}) {
    if (file.find(part) != std::string_view::npos) return false;
  }
  return !IsGeneratedFile(file);
}

bool IsTorchFile(std::string_view file) {
  for (const std::string_view part :
       {"-packages/torch/", "-packages\\torch\\", "/torch/_", "/torch/distributed/"}) {
    if (file.find(part) != std::string_view::npos) return true;
  }
  return file.starts_with("torch/");
}

std::optional<PythonFrame> LastFrame(std::string_view text, bool user_only) {
  std::optional<PythonFrame> last;
  while (!text.empty()) {
    std::optional<PythonFrame> frame = ParseFrameLine(NextLine(text));
    if (frame && (!user_only || IsUserFile(frame->file))) last = frame;
  }
  return last;
}

namespace {

// Of the lines below the header of a traceback.
TracebackSummary SummarizeLines(std::string_view rest) {
  TracebackSummary summary;
  const std::string_view frames = rest;
  // Frames and their source lines are indented; the first line that is not is the exception.
  std::string_view exception = rest;
  while (!rest.empty()) {
    exception = rest;
    const std::string_view line = NextLine(rest);
    if (!line.empty() && line[0] != ' ') break;
    exception = rest;
  }
  std::size_t type_end = 0;
  while (type_end < exception.size() && IsTypeCharacter(exception[type_end])) ++type_end;
  summary.type = exception.substr(0, type_end);
  if (const std::size_t dot = summary.type.rfind('.'); dot != std::string_view::npos)
    summary.type.remove_prefix(dot + 1);
  std::string_view message = exception.substr(type_end);
  if (message.substr(0, 2) == ": ") message.remove_prefix(2);
  summary.message = TrimEnd(message);

  if (const std::size_t marker = summary.message.rfind(kFromUserCode);
      marker != std::string_view::npos) {
    const std::string_view user_code = summary.message.substr(marker);
    summary.user_frame = LastFrame(user_code, true);
    if (!summary.user_frame) summary.user_frame = LastFrame(user_code);
  }
  if (!summary.user_frame)
    summary.user_frame = LastFrame(frames.substr(0, frames.size() - exception.size()), true);
  if (!summary.user_frame) summary.user_frame = LastFrame(summary.message, true);
  return summary;
}

}  // namespace

TracebackSummary SummarizeTraceback(std::string_view text) {
  const std::size_t begin = FindTracebacks(text).last;
  if (begin == std::string_view::npos) return {};
  std::string_view rest = text.substr(begin);
  NextLine(rest);
  return SummarizeLines(rest);
}

TracebackSummary CauseOfTraceback(std::string_view text) {
  const Chain chain = FindTracebacks(text);
  if (chain.root == chain.last) return {};
  std::string_view rest = text.substr(chain.root, chain.root_end - chain.root);
  NextLine(rest);
  return SummarizeLines(rest);
}

TracebackSummary QuotedTraceback(std::string_view message) {
  const std::size_t at = message.find(kTraceback);
  if (at == std::string_view::npos) return {};
  // As workers of a DataLoader write it.
  constexpr std::string_view kOriginal = "Original ";
  const bool is_original = message.substr(0, at).ends_with(kOriginal);
  const std::size_t begin = is_original ? at - kOriginal.size() : at;
  if (begin > 0 && message[begin - 1] != '\n') return {};
  std::string_view rest = message.substr(at);
  NextLine(rest);  // "… (RANK 0)"
  TracebackSummary quoted = SummarizeLines(rest);
  quoted.message = TrimEnd(quoted.message.substr(0, quoted.message.find("\nTraceback (")));
  return quoted;
}

}  // namespace tlparse
