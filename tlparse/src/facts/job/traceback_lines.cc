#include "facts/job/traceback_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "artifacts/common/text/python_traceback.h"

namespace tlparse {
namespace {

// The last frame of the user's in these lines, but for those of one function.
std::string LastOfUser(std::string_view lines, std::string_view but) {
  std::string last;
  while (!lines.empty()) {
    const std::optional<PythonFrame> frame = ParseFrameLine(NextLine(lines));
    if (frame && IsUserFile(frame->file) && frame->function != but && frame->function != "<module>")
      last = fmt::format("{}:{} in {}", frame->file.substr(frame->file.rfind('/') + 1), frame->line,
                         frame->function);
  }
  return last;
}

}  // namespace

TracebackLines LinesOfTraceback(std::string_view traceback, std::string_view file,
                                std::int64_t line) {
  constexpr std::string_view kBegin = "Traceback (most recent call last)";
  constexpr std::string_view kWorker = "On WorkerInfo(id=";  // of torch.distributed.rpc
  TracebackLines lines;
  if (file.empty()) return lines;
  const std::size_t at = traceback.rfind(fmt::format("File \"{}\", line {}, in ", file, line));
  if (at == std::string_view::npos) return lines;
  std::string_view rest = traceback.substr(at);
  const std::string_view head = NextLine(rest);
  const std::string_view function = head.substr(head.rfind(" in ") + 4);
  std::string_view code = NextLine(rest);
  code.remove_prefix(std::min(code.size(), code.find_first_not_of(' ')));
  if (!code.starts_with("File \"")) lines.code = TrimEnd(code);
  const std::size_t begin = traceback.substr(0, at).rfind(kBegin);
  if (begin == std::string_view::npos) return lines;
  lines.caller = LastOfUser(traceback.substr(begin, at - begin), function);
  // The other process was called by what precedes.
  if (lines.caller.empty() && traceback.substr(0, begin).find(kWorker) != std::string_view::npos)
    lines.caller = LastOfUser(traceback.substr(0, begin), {});
  return lines;
}

}  // namespace tlparse
