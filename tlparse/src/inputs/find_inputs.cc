#include "inputs/find_inputs.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "inputs/reader.h"
#include "inputs/recorder/name.h"

namespace tlparse {
namespace {

std::int64_t SizeOf(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)
             ? std::int64_t{status.st_size}
             : -1;
}

// True if `path` went to found.runtime.
bool Take(const std::string& path, FoundInputs& found) {
  const std::int64_t size_bytes = SizeOf(path);
  if (size_bytes < 0) return false;  // a pipe can be read once only
  if (size_bytes == 0) {
    // Its rank had begun to write a dump: that is known by the name alone.
    if (!IsDumpName(path)) return false;
    found.runtime.push_back({path, InputKind::kRecorderDump, 0});
    return true;
  }
  Result<InputKind> kind = RecognizeFile(path);
  if (!kind) return false;
  // A dump that is cut after its first bytes, or a pickle that is refused, is one by its name.
  if (*kind == InputKind::kUnknown && IsDumpName(path)) kind = InputKind::kRecorderDump;
  if (!HasRuntimeReader(*kind)) return false;
  found.runtime.push_back({path, *kind, size_bytes});
  return true;
}

}  // namespace

Result<FoundInputs> FindInputs(const std::string& path) {
  ASSIGN_OR_RETURN(FoundLogs logs, FindLogs(path));
  FoundInputs found;
  for (FoundLog& log : logs.logs) {
    // Files of a directory were recognised as logs by content or by name; a named file was not read yet.
    const bool is_named = log.path == path && path != "-";
    if (is_named && Take(log.path, found)) continue;
    found.logs.push_back(std::move(log));
  }
  for (SkippedFile& file : logs.skipped) {
    if (file.is_other_file && Take(file.path, found)) continue;
    found.skipped.push_back(std::move(file));
  }
  std::sort(found.runtime.begin(), found.runtime.end(),
            [](const RuntimeInput& a, const RuntimeInput& b) { return a.path < b.path; });
  return found;
}

void AppendInputs(FoundInputs&& part, FoundInputs& found) {
  const auto move = [](auto& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  move(part.logs, found.logs);
  move(part.runtime, found.runtime);
  move(part.skipped, found.skipped);
}

}  // namespace tlparse
