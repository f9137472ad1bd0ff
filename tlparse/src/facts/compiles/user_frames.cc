#include "facts/compiles/user_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "artifacts/common/text/python_traceback.h"
#include "queries/facts/compiles/user_frames.h"

namespace tlparse {

Result<std::string> UserFramesOfStack(Database& database, std::int64_t stack_id) {
  std::string text;
  FOR_EACH_ROW(const UserFrame& row, Query<UserFrame>(database, {.stack_id = stack_id})) {
    if (!IsUserFile(row.file)) continue;
    const std::string_view file = row.file;
    text += fmt::format("{}{}:{} in {}", text.empty() ? "" : ", ", file.substr(file.rfind('/') + 1),
                        row.line, row.function);
  }
  return text;
}

Result<std::string> UserFramesOf(Database& database, std::int64_t compile_id) {
  ASSIGN_OR_RETURN(const FirstRow<StackOfCompile> stack,
                   First(Query<StackOfCompile>(database, {.compile_id = compile_id})));
  if (!stack || !stack->stack_id) return std::string();
  return UserFramesOfStack(database, *stack->stack_id);
}

namespace {

std::string UserFramesOfText(std::string_view stack) {
  std::string text;
  while (!stack.empty()) {
    const std::optional<PythonFrame> frame = ParseFrameLine(NextLine(stack));
    if (!frame || !IsUserFile(frame->file)) continue;
    const std::string_view file = frame->file;
    text = fmt::format("{}:{} in {}{}{}", file.substr(file.rfind('/') + 1), frame->line,
                       frame->function, text.empty() ? "" : ", ", text);
  }
  return text;
}

}  // namespace

Result<std::vector<std::string>> UserFramesOfBreaks(Database& database, std::int64_t compile_id,
                                                    std::optional<std::int64_t> record_id) {
  std::vector<std::string> stacks;
  FOR_EACH_ROW(const StackOfBreak& row,
               Query<StackOfBreak>(database, {.compile_id = compile_id, .record_id = record_id})) {
    std::string frames = UserFramesOfText(row.user_stack);
    if (!frames.empty()) stacks.push_back(std::move(frames));
  }
  return stacks;
}

void ShownStacks::Add(const std::string& what, const std::string& frames) {
  if (frames.empty()) return;
  std::string line = fmt::format("stack of {}: {}", what, frames);
  if (std::find(lines_.begin(), lines_.end(), line) == lines_.end())
    lines_.push_back(std::move(line));
}

}  // namespace tlparse
