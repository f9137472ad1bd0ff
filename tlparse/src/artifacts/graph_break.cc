// dynamo_graph_break_reason: why Dynamo cut a graph. Three places of torch/_dynamo write it
// (symbolic_convert.log_graph_break, convert_frame's wrapper, exc.unimplemented_with_warning), in
// these shapes:
//
//   Graph break in user code at FILE:LINE        |  WON'T CONVERT FUNCTION FILE line LINE          |  [user stack]
//   Reason: …   (2.14: Graph Break Reason: …)    |  ========== TorchDynamo Stack Trace ==========  |  [Traceback …]
//   User code traceback:                         |  Traceback …                                    |  message
//     File …                                     |  ========== The above exception occurred …      |
//   [Traceback …]                                |    File …                                       |
#include "rows/graph_break.h"

#include <charconv>

#include "artifacts/common/json_members.h"
#include "artifacts/common/text/python_traceback.h"

namespace tlparse {
namespace {

constexpr std::string_view kInUserCode = "Graph break in user code at ";
constexpr std::string_view kReason = "Reason: ";
constexpr std::string_view kUserTraceback = "\nUser code traceback:\n";
constexpr std::string_view kTracebackBelow = "\nTraceback (most recent call last):\n";
// format_exc() outside an except block
constexpr std::string_view kNoTraceback = "\nNoneType: None";
constexpr std::string_view kWontConvert = "WON'T CONVERT ";
constexpr std::string_view kProcessing =
    "========== The above exception occurred while processing the following code ==========\n";

struct GraphBreak {
  std::string reason;
  std::string_view user_stack;
  std::string_view user_file;
  std::optional<std::int64_t> user_line;
};

std::string_view Until(std::string_view text, std::string_view mark) {
  return text.substr(0, text.find(mark));
}

std::string_view WithoutBlankLines(std::string_view text) {
  while (!text.empty() && text.front() == '\n') text.remove_prefix(1);
  return TrimEnd(text);
}

// "a.py:7" or "a.py line 7": the number at the end and the text before `separator`.
void SplitPosition(std::string_view text, std::string_view separator, GraphBreak& graph_break) {
  const std::size_t at = text.rfind(separator);
  if (at == std::string_view::npos) return;
  const std::string_view digits = text.substr(at + separator.size());
  std::int64_t line = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), line);
  if (error != std::errc() || end != digits.data() + digits.size()) return;
  graph_break.user_file = text.substr(0, at);
  graph_break.user_line = line;
}

// Whether the file belongs to Python or to an installed package.
bool IsOfLibrary(std::string_view file) {
  for (const std::string_view mark : {"/site-packages/", "/dist-packages/", "/lib/python"}) {
    if (file.find(mark) != std::string_view::npos) return true;
  }
  return file.starts_with("<frozen ");
}

// The innermost frame of the user's own code; the innermost of all if there is none.
std::optional<PythonFrame> UserFrame(std::string_view stack) {
  std::optional<PythonFrame> found;
  while (!stack.empty()) {
    const std::optional<PythonFrame> frame = ParseFrameLine(NextLine(stack));
    if (frame && (!IsOfLibrary(frame->file) || !found || IsOfLibrary(found->file))) found = frame;
  }
  return found;
}

// What went wrong: the first line of the reason that says more than where Dynamo was.
std::string_view CauseOf(std::string_view reason) {
  constexpr std::string_view kBoilerplate = "Encountered graph break when attempting to trace ";
  std::string_view rest = reason;
  while (!rest.empty()) {
    const std::string_view line = TrimEnd(NextLine(rest));
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin != std::string_view::npos && !line.substr(begin).starts_with(kBoilerplate))
      return line.substr(begin);
  }
  return TrimEnd(reason.substr(0, reason.find('\n')));
}

// The exception that the text ends with, in one line where it continues with the graph.
std::string ReasonOf(const TracebackSummary& summary) {
  std::string reason(summary.type);
  if (!reason.empty() && !summary.message.empty()) reason += ": ";
  reason += summary.message;
  return reason;
}

GraphBreak ParseInUserCode(std::string_view text) {
  GraphBreak result;
  std::string_view rest = text;
  SplitPosition(NextLine(rest).substr(kInUserCode.size()), ":", result);
  const std::size_t reason = rest.find(kReason);
  if (reason != std::string_view::npos && reason < rest.find('\n'))
    rest.remove_prefix(reason + kReason.size());
  const std::size_t user = rest.find(kUserTraceback);
  if (user == std::string_view::npos) {
    result.reason = TrimEnd(Until(Until(rest, kTracebackBelow), kNoTraceback));
    return result;
  }
  result.reason = TrimEnd(rest.substr(0, user));
  const std::string_view stack = rest.substr(user + kUserTraceback.size());
  result.user_stack = WithoutBlankLines(Until(Until(stack, kTracebackBelow), kNoTraceback));
  return result;
}

GraphBreak ParseWontConvert(std::string_view text) {
  GraphBreak result;
  std::string_view rest = text;
  std::string_view head = NextLine(rest).substr(kWontConvert.size());
  if (const std::size_t blank = head.find(' '); blank != std::string_view::npos)
    head.remove_prefix(blank + 1);
  SplitPosition(head, " line ", result);
  const std::string_view error = Until(rest, kProcessing);
  const TracebackSummary summary = SummarizeTraceback(error);
  result.reason = summary.type.empty() ? std::string(TrimEnd(error)) : ReasonOf(summary);
  // torch.fx adds the node and the traceback of its making.
  result.reason.resize(std::min(result.reason.size(), result.reason.find("\n\nWhile executing ")));
  if (const std::size_t code = rest.find(kProcessing); code != std::string_view::npos) {
    const std::string_view stack = rest.substr(code + kProcessing.size());
    result.user_stack = WithoutBlankLines(Until(stack, "\n=========="));
  }
  return result;
}

GraphBreak ParseOther(std::string_view text) {
  GraphBreak result;
  const TracebackSummary summary = SummarizeTraceback(text);
  if (summary.type.empty()) {
    result.reason = TrimEnd(Until(text, kNoTraceback));
    return result;
  }
  result.reason = ReasonOf(summary);
  result.user_stack = WithoutBlankLines(text.substr(0, text.find(kTracebackBelow.substr(1))));
  return result;
}

class GraphBreaks final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override { tables.Use<GraphBreakRow>(); }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    const std::string_view text = context.Payload();
    GraphBreak found = text.starts_with(kInUserCode)    ? ParseInUserCode(text)
                       : text.starts_with(kWontConvert) ? ParseWontConvert(text)
                                                        : ParseOther(text);
    if (!found.user_line || IsOfLibrary(found.user_file)) {
      const std::optional<PythonFrame> frame = UserFrame(found.user_stack);
      if (frame && (!found.user_line || !IsOfLibrary(frame->file))) {
        found.user_file = frame->file;
        found.user_line = frame->line;
      }
    }
    context.rows().Add(GraphBreakRow{.record_id = record.id,
                                     .compile_id = record.compile_row_id(),
                                     .attempt = record.attempt,
                                     .reason_id = context.Text(found.reason),
                                     .user_stack_id = context.OptionalText(found.user_stack),
                                     .user_file_id = context.OptionalText(found.user_file),
                                     .user_line = found.user_line,
                                     .cause_id = context.Text(CauseOf(found.reason))});
    if (record.compile != nullptr) record.compile->has_graph_break = true;
    return {};
  }

 private:
};

}  // namespace

TLPARSE_ARTIFACT(graph_break, GraphBreaks, "artifact/dynamo_graph_break_reason")

}  // namespace tlparse
