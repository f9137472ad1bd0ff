#include "answers/compile/traced_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "artifacts/common/text/python_traceback.h"
#include "base/ascii.h"
#include "queries/answers/compile/traced_lines.h"

namespace tlparse {
namespace {

std::string_view FileNameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

class LineCollector {
 public:
  LineCollector(TracedLines& result, std::string_view function_file)
      : result_(result), function_file_(function_file) {}

  void Add(std::string_view file, std::int64_t line, std::string_view code) {
    TracedLine one{std::string(file), line, std::string(Trimmed(code))};
    const auto known = std::find_if(result_.lines.begin(), result_.lines.end(),
                                    [&](const TracedLine& other) { return other.IsAt(one); });
    if (known == result_.lines.end()) {
      result_.lines.push_back(std::move(one));
    } else if (known->code.empty()) {
      known->code = std::move(one.code);
    }
  }
  // The whole path of a file whose path is cut on the left; empty: it is none of those that are
  // known to be the user's.
  std::string WholePathOf(std::string_view cut) const {
    if (function_file_.ends_with(cut)) return std::string(function_file_);
    for (const TracedLine& one : result_.lines)
      if (one.file.ends_with(cut)) return one.file;
    return {};
  }
  void Sort() {
    std::sort(result_.lines.begin(), result_.lines.end(),
              [&](const TracedLine& a, const TracedLine& b) {
                return std::make_tuple(a.file != function_file_, std::string_view(a.file), a.line) <
                       std::make_tuple(b.file != function_file_, std::string_view(b.file), b.line);
              });
  }

 private:
  TracedLines& result_;
  std::string_view function_file_;
};

Result<void> AddLinesOfGuards(Database& database, std::int64_t compile_id, TracedLines& result,
                              LineCollector& lines) {
  FOR_EACH_ROW(const LineOfGuard& row,
               KeptQuery<LineOfGuard>(database, {.compile_id = compile_id})) {
    result.has_guards = true;
    if (const std::string file = lines.WholePathOf(row.file); !file.empty() && IsUserFile(file))
      lines.Add(file, row.line, row.code);
  }
  return {};
}

Result<void> AddLinesOfSymbols(Database& database, std::int64_t compile_id, LineCollector& lines) {
  std::vector<std::int64_t> stacks;
  FOR_EACH_ROW(const StackOfSymbol& row,
               KeptQuery<StackOfSymbol>(database, {.compile_id = compile_id}))
    stacks.push_back(row.stack_id);
  for (const std::int64_t stack : stacks) {
    FOR_EACH_ROW(const FrameOfSymbol& row,
                 KeptQuery<FrameOfSymbol>(database, {.stack_id = stack})) {
      if (!IsUserFile(row.file)) continue;
      lines.Add(row.file, row.line, row.code);
      break;
    }
  }
  return {};
}

}  // namespace

Result<TracedLines> LoadTracedLines(Database& database, std::int64_t compile_id,
                                    std::string_view function_file) {
  TracedLines result;
  LineCollector lines(result, function_file);
  ASSIGN_OR_RETURN(const std::string key, KeyOfTracedLines(database, compile_id));
  result.has_graph = !key.empty();
  FOR_EACH_ROW(const LineOfNode& row, KeptQuery<LineOfNode>(database, {.compile_id = compile_id})) {
    if (IsUserFile(row.file)) lines.Add(row.file, row.line, row.code);
  }
  RETURN_IF_ERROR(AddLinesOfGuards(database, compile_id, result, lines));
  if (!result.has_graph) RETURN_IF_ERROR(AddLinesOfSymbols(database, compile_id, lines));
  lines.Sort();
  return result;
}

Result<std::string> KeyOfTracedLines(Database& database, std::int64_t compile_id) {
  std::string key;
  FOR_EACH_ROW(const ContentOfLines& row,
               KeptQuery<ContentOfLines>(database, {.compile_id = compile_id})) {
    if (!row.graphs.empty()) key = fmt::format("{} {}", row.graphs, row.guards);
  }
  return key;
}

std::vector<TracedLine> LinesWithout(const TracedLines& a, const TracedLines& b) {
  std::vector<TracedLine> rest;
  for (const TracedLine& one : a.lines) {
    if (std::none_of(b.lines.begin(), b.lines.end(),
                     [&](const TracedLine& other) { return other.IsAt(one); }))
      rest.push_back(one);
  }
  return rest;
}

std::string LinesText(const std::vector<TracedLine>& lines) {
  std::string text;
  for (std::size_t i = 0; i < lines.size();) {
    const bool is_same_file = i > 0 && lines[i - 1].file == lines[i].file;
    if (i > 0) text += ", ";
    if (!is_same_file) text += fmt::format("{}:", FileNameOf(lines[i].file));
    std::size_t end = i + 1;
    while (end < lines.size() && lines[end].file == lines[i].file &&
           lines[end].line == lines[end - 1].line + 1)
      ++end;
    text += std::to_string(lines[i].line);
    if (end - i > 2) {
      text += fmt::format("-{}", lines[end - 1].line);
      i = end;
    } else {
      ++i;
    }
  }
  return text;
}

}  // namespace tlparse
