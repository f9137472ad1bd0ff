#include "runner/recording.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "log/output_marker.h"
#include "runner/hook.h"

namespace tlparse {

namespace {

Result<void> MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return {};
  return Fail(ErrorCode::kIo, fmt::format("cannot make '{}': {}", path, std::strerror(errno)));
}

Result<void> WriteText(const std::string& path, std::string_view text) {
  std::FILE* const file = std::fopen(path.c_str(), "wbe");
  const bool is_whole =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr && std::fclose(file) == 0 && is_whole) return {};
  return Fail(ErrorCode::kIo, fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
}

}  // namespace

bool CanHoldPipes(const std::string& folder) {
  const std::string path = folder + "/.tlparse-try.pipe";
  const bool is_made = mkfifo(path.c_str(), 0600) == 0;
  unlink(path.c_str());
  return is_made;
}

Result<RecordPlaces> MakeRecordPlaces(const std::string& output, bool has_hook) {
  std::error_code error;
  const std::string root = std::filesystem::canonical(output, error).string();
  if (error) return Fail(ErrorCode::kIo, fmt::format("'{}': {}", output, error.message()));
  RecordPlaces places;
  places.recorded = fmt::format("{}/{}", root, kRecordedFolder);
  places.pipes = root + "/ask";
  RETURN_IF_ERROR(MakeFolder(places.recorded));
  RETURN_IF_ERROR(MakeFolder(places.pipes));
  if (!CanHoldPipes(places.pipes)) places.pipes.clear();
  places.stacks = root + "/stacks.txt";
  places.changed = root + "/changed.txt";
  if (!has_hook) return places;
  places.processes = root + "/processes.txt";
  places.ends = root + "/ends";
  places.hook_folder = root + "/hook";
  RETURN_IF_ERROR(MakeFolder(places.ends));
  RETURN_IF_ERROR(MakeFolder(places.hook_folder));
  RETURN_IF_ERROR(WriteText(places.hook_folder + "/sitecustomize.py", HookText()));
  RETURN_IF_ERROR(WriteText(places.hook_folder + "/tlparse_numbers.py", NumbersText()));
  return places;
}

}  // namespace tlparse
