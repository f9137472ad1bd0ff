#include "inputs/join/user_line.h"

#include <fmt/format.h>

#include "artifacts/common/text/python_traceback.h"
#include "inputs/common/generated_code.h"
#include "queries/inputs/join/user_line.h"

namespace tlparse {
namespace {

// "train.py(27): step" -> its parts; of other names the function alone.
struct FunctionFrame {
  std::string_view file, line, function;
};

FunctionFrame FunctionOf(std::string_view name) {
  const std::string_view file = FileOfFrame(name);
  const std::size_t end = name.find("): ");
  if (file.empty() || end == name.npos || end < file.size() + 1) return {{}, {}, name};
  return {file, name.substr(file.size() + 1, end - file.size() - 1), name.substr(end + 3)};
}

}  // namespace

UserLine UserLineOf(const std::vector<OpenFrame>& frames) {
  UserLine found;
  const OpenFrame* function = nullptr;
  for (const OpenFrame& frame : frames) {
    if (IsUserFile(FileOfFrame(frame.name))) {
      function = &frame;
      found.line = 0;
    } else if (frame.line > 0 && IsUserFile(frame.file)) {
      found.line = frame.line;
      found.file = frame.file;
      found.id = frame.file_id;
    }
  }
  if (function == nullptr) return found;
  const FunctionFrame parts = FunctionOf(function->name);
  if (found.line > 0) {
    if (parts.file == found.file) found.function = parts.function;
    return found;
  }
  found.inside = fmt::format("{} ({}:{})", parts.function, parts.file, parts.line);
  found.id = function->name_id;
  return found;
}

Result<std::string> WholePaths::Of(Database& database, const std::string& file) {
  const auto [entry, is_new] = paths_.try_emplace(file, file);
  if (!is_new || file.starts_with('/')) return entry->second;
  std::size_t count = 0;
  std::string path;
  FOR_EACH_ROW(const FileOfStacks& row, Query<FileOfStacks>(database, {.suffix = "/" + file})) {
    ++count;
    path = row.file;
  }
  if (count == 1) entry->second = path;
  return entry->second;
}

}  // namespace tlparse
