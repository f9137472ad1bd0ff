#include "cli/watch_alert.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "base/json_writer.h"
#include "cli/finding_fields.h"

extern char** environ;

namespace tlparse {

namespace {

// A file without a name that holds the text; not open if none can be made.
FileDescriptor FindingFile(const std::string& json) {
  FileDescriptor file(memfd_create("finding", MFD_CLOEXEC));
  if (file.is_open() &&
      (write(file.get(), json.data(), json.size()) < 0 || lseek(file.get(), 0, SEEK_SET) < 0))
    file.Close();
  return file;
}

constexpr std::string_view kPrefix = "TLPARSE_FINDING_";

}  // namespace

Result<WatchAlert> ParseAlert(const std::string& text) {
  WatchAlert alert;
  const std::size_t sign = text.find('>');
  const std::optional<FindingKind> kind = FindingKindOf(text.substr(0, sign));
  if (!kind) {
    return Fail(ErrorCode::kUsage,
                fmt::format("--alert '{}': there is no finding of that kind; 'tlparse findings "
                            "--help' lists them",
                            text));
  }
  alert.kind = *kind;
  if (sign == std::string::npos) return alert;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + sign + 1, end, alert.age_s);
  if (error != std::errc() || std::string_view(rest, end) != "s" || alert.age_s < 0)
    return Fail(ErrorCode::kUsage,
                fmt::format("--alert '{}': give seconds, as in stuck>300s", text));
  return alert;
}

void RunForFinding(const std::string& command, const Finding& finding) {
  const JsonWriter json = ToJson(finding);
  const FileDescriptor input = FindingFile(json.text());
  std::vector<std::string> own = {fmt::format("{}KIND={}", kPrefix, Name(finding.kind)),
                                  fmt::format("{}ID={}", kPrefix, finding.id),
                                  fmt::format("{}TITLE={}", kPrefix, finding.title)};
  std::vector<char*> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with(kPrefix)) variables.push_back(*entry);
  }
  for (std::string& entry : own) variables.push_back(entry.data());
  variables.push_back(nullptr);
  std::string shell = "sh", option = "-c", text = command;
  char* const arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (input.is_open()) {
    posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  pid_t child = 0;
  const int error = posix_spawn(&child, "/bin/sh", &actions, nullptr, arguments, variables.data());
  if (error != 0)
    std::fprintf(stderr, "tlparse: --exec: cannot start /bin/sh: %s\n", std::strerror(error));
  posix_spawn_file_actions_destroy(&actions);
}

}  // namespace tlparse
