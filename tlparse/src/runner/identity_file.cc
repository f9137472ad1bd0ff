#include "runner/identity_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/file_descriptor.h"
#include "base/json_string.h"

namespace tlparse {

namespace {

// As the hook writes it: the start of the machine, and the name space of the process ids.
std::string OwnMachine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot_id;
  std::getline(file, boot_id);
  char name_space[64] = "";
  if (readlink("/proc/self/ns/pid", name_space, sizeof name_space - 1) <= 0) return boot_id;
  return boot_id + " " + name_space;
}

template <typename T>
bool ParseNumber(std::string_view text, T& value) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end && value >= 0;
}

// A time, and a traceback as a JSON string.
std::optional<UncaughtException> ParseRaised(std::string_view time, std::string_view json) {
  UncaughtException raised;
  if (!ParseNumber(time, raised.raised_us) || json.size() < 2) return std::nullopt;
  std::optional<std::string> text = UnescapeJson(json.substr(1, json.size() - 2));
  if (!text) return std::nullopt;
  raised.traceback = *std::move(text);
  return raised;
}

// Without its end.
std::string TakeFirst(std::string& text, std::string_view ends_with = "\n") {
  const std::size_t end = std::min(text.find(ends_with), text.size());
  std::string first = text.substr(0, end);
  text.erase(0, end + ends_with.size());
  return first;
}

// The exit code is the first line, the stack ends at an empty one.
std::optional<LeftWith> ParseLeft(UncaughtException raised) {
  LeftWith left;
  if (!ParseNumber(TakeFirst(raised.traceback), left.exit_code)) return std::nullopt;
  left.stack = TakeFirst(raised.traceback, "\n\n");
  if (!raised.traceback.empty()) left.raised = std::move(raised);
  return left;
}

// machine, kind, pid, start, parent; then rank and command, or what was raised
std::optional<ProcessIdentity> ParseIdentity(std::string_view line, std::string_view machine) {
  std::array<std::string_view, 7> fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t end = i + 1 < fields.size() ? line.find('\t') : line.size();
    if (end == std::string_view::npos) return std::nullopt;
    fields[i] = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  ProcessIdentity identity;
  if (fields[0] != machine || !ParseNumber(fields[2], identity.pid) ||
      !ParseNumber(fields[3], identity.started_ticks) ||
      !ParseNumber(fields[4], identity.parent_pid))
    return std::nullopt;
  const bool is_of_task = fields[1] == "task";
  identity.is_of_thread = fields[1] == "thread" || is_of_task;
  if (fields[1] == "left") {
    std::optional<UncaughtException> raised = ParseRaised(fields[5], fields[6]);
    if (raised) identity.left = ParseLeft(*std::move(raised));
    return identity.left ? std::optional(std::move(identity)) : std::nullopt;
  }
  if (fields[1] == "raised" || identity.is_of_thread) {
    identity.raised = ParseRaised(fields[5], fields[6]);
    if (!identity.raised) return std::nullopt;
    if (identity.is_of_thread) identity.raised->thread = TakeFirst(identity.raised->traceback);
    identity.raised->is_of_task = is_of_task;
    return identity;
  }
  if (fields[1] == "numbers") {
    identity.numbers = fields[5];
    identity.command = fields[6];
    return identity;
  }
  if (fields[1] == "errors") {
    if (!ParseNumber(fields[5], identity.errors_from)) return std::nullopt;
    identity.errors = fields[6];
    return identity;
  }
  identity.is_member = fields[1] == "member";
  if (!fields[5].empty()) identity.rank_text = fields[5];
  identity.command = fields[6];
  return identity;
}

}  // namespace

IdentityFile::IdentityFile(std::string path) : path_(std::move(path)), machine_(OwnMachine()) {}

std::vector<ProcessIdentity> IdentityFile::ReadNew() {
  std::vector<ProcessIdentity> identities;
  if (path_.empty()) return identities;
  const FileDescriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 16 << 10> buffer{};
  while (file.is_open()) {
    const ssize_t count = pread(file.get(), buffer.data(), buffer.size(),
                                offset_ + static_cast<std::int64_t>(text.size()));
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  std::string_view rest = text;
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    if (auto identity = ParseIdentity(rest.substr(0, end), machine_))
      identities.push_back(*std::move(identity));
    rest.remove_prefix(end + 1);
    offset_ += static_cast<std::int64_t>(end) + 1;
  }
  return identities;
}

}  // namespace tlparse
