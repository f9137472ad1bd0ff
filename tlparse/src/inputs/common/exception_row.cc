#include "inputs/common/exception_row.h"

#include <string>

#include "artifacts/common/text/python_traceback.h"
#include "base/utf8.h"
#include "rows/uncaught_exception.h"

namespace tlparse {
namespace {

constexpr std::string_view kHeader = "Traceback (most recent call last):\n";

// torch.distributed.rpc quotes the exception of the other process, with its traceback; a KeyError shows that
// as Python writes a string: "KeyError: 'On WorkerInfo(id=0, name=ps):\\nKeyError(\\'x\\')\\nTraceback …'".
std::string WithLinesOfWorker(std::string_view message) {
  constexpr std::string_view kWorker = "'On WorkerInfo(id=";
  const std::size_t at = message.find(kWorker);
  if (at == std::string_view::npos) return std::string(message);
  std::string plain(message.substr(0, at));
  for (std::size_t i = at + 1; i < message.size(); ++i) {
    const char c = message[i];
    if (c == '\'') {  // the end of the string
      plain += message.substr(i + 1);
      break;
    }
    const bool is_escape = c == '\\' && i + 1 < message.size();
    const char next = is_escape ? message[++i] : c;
    if (is_escape && next != '\\' && next != '\'' && next != '"' && next != 'n' && next != 't')
      plain += c;
    plain += is_escape && next == 'n' ? '\n' : is_escape && next == 't' ? '\t' : next;
  }
  return plain;
}

}  // namespace

void AddException(RuntimeContext& context, const ExceptionPlace& place,
                  std::string_view traceback) {
  const std::string text = SanitizeUtf8(traceback);
  // Of a source that Python cannot read it prints no header.
  const std::string with_header = std::string(kHeader) + text;
  const bool has_header = text.find(kHeader) != std::string::npos;
  const TracebackSummary summary = SummarizeTraceback(has_header ? text : with_header);
  const bool is_cut = summary.type == "Traceback";  // nothing is behind the header
  if (summary.type.empty() || is_cut) return;
  const std::string message = WithLinesOfWorker(summary.message);
  UncaughtExceptionRow row{.id = context.NextId<UncaughtExceptionRow>(),
                           .profile_id = context.profile_id(),
                           .is_of_task = place.is_of_task,
                           .type = RowText(summary.type),
                           .message = RowText(message),
                           .traceback = RowText(text)};
  row.ordinal = place.ordinal;
  row.line = place.line;
  row.rank = place.rank;
  row.raised_us = place.raised_us;
  const std::string thread = SanitizeUtf8(place.thread.value_or(""));
  if (place.thread) row.thread = thread;
  row.process_name = place.process_name;
  // Dynamo says in the message which line it was tracing.
  const bool is_traced = summary.message.find("from user code:") != std::string_view::npos;
  const TracebackSummary cause = is_traced ? TracebackSummary() : CauseOfTraceback(text);
  const TracebackSummary quoted =
      QuotedTraceback(cause.type.empty() ? std::string_view(message) : cause.message);
  const auto& raised = cause.user_frame ? cause.user_frame : summary.user_frame;
  if (const auto& frame = quoted.user_frame ? quoted.user_frame : raised) {
    row.user_file = RowText(frame->file);
    row.user_line = frame->line;
    row.user_function = RowText(frame->function);
  }
  context.rows().Add(row);
}

void AddAbort(RuntimeContext& context, const AbortText& abort) {
  const std::string& text = abort.text;
  if (text.empty() && abort.signal == 0) return;
  PrintedAbortRow row{
      .id = context.NextId<PrintedAbortRow>(),
      .profile_id = context.profile_id(),
      .is_of_device = text.find(".cu:") != text.npos && text.find(": Assertion `") != text.npos,
      .text = RowText(text)};
  if (abort.line > 0) row.line = abort.line;
  row.rank = abort.rank;
  if (abort.signal != 0) row.signal = abort.signal;
  if (!abort.stopped_at.empty()) row.stopped_at = RowText(abort.stopped_at);
  if (!abort.fault_thread.empty()) row.fault_thread = RowText(abort.fault_thread);
  context.rows().Add(row);
}

}  // namespace tlparse
