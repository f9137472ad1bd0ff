#include "runner/proc_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/file_descriptor.h"

namespace tlparse {

namespace {

std::string ReadProc(pid_t pid, const char* name, std::size_t most) {
  const FileDescriptor file(
      open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(file.is_open() ? most : 0, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = read(file.get(), text.data() + size, text.size() - size);
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

constexpr std::size_t kMostStatusBytes = 16 << 10;

// A line of `status` that holds a mask of signals.
bool HasSignal(const std::string& status, std::string_view name, int number) {
  const std::size_t at = status.find(fmt::format("\n{}:", name));
  if (at == std::string::npos) return false;
  const char* const digits = status.c_str() + at + name.size() + 2;
  return (std::strtoull(digits, nullptr, 16) >> (number - 1) & 1) != 0;
}

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

// <linux/pidfd.h> of Linux 6.15.
struct PidfdInfo {
  std::uint64_t mask, cgroup_id;
  std::uint32_t ids[11];
  std::int32_t exit_code;
};
constexpr std::uint64_t kInfoOfExit = 1 << 3;

}  // namespace

std::optional<ProcStat> ReadProcStat(pid_t pid) {
  // The owner first: after a read that found a process that has ended, it may be gone.
  struct stat owner {};
  const bool is_own = ::stat(fmt::format("/proc/{}", pid).c_str(), &owner) == 0 &&
                      (owner.st_uid == geteuid() || geteuid() == 0);
  const std::string text = ReadProc(pid, "stat", 2048);
  // The name in parentheses may hold anything.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return std::nullopt;
  ProcStat stat;
  stat.is_own = is_own;
  stat.state = text[name_end + 2];
  const char* at = text.c_str() + name_end + 3;
  // proc(5): the fields from the fourth on.
  for (int field = 4; field <= 52; ++field) {
    char* end = nullptr;
    const long long value = std::strtoll(at, &end, 10);
    if (end == at) break;
    at = end;
    if (field == 4) stat.parent = static_cast<pid_t>(value);
    if (field == 14 || field == 15) stat.cpu_ticks += value;
    if (field == 22) stat.started_ticks = value;
    if (field == 52) stat.wait_status = static_cast<int>(value);
  }
  return stat;
}

std::vector<pid_t> ListProcesses() {
  std::vector<pid_t> pids;
  const Folder folder(opendir("/proc"));
  while (folder) {
    const dirent* const entry = readdir(folder.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
      pids.push_back(static_cast<pid_t>(std::atoi(entry->d_name)));
  }
  return pids;
}

std::optional<std::string> ReadProcVariable(pid_t pid, const std::string& name) {
  const std::string all = ReadProc(pid, "environ", 4 << 20);
  for (std::string_view rest = all; !rest.empty();) {
    const std::string_view variable = rest.substr(0, rest.find('\0'));
    if (variable.size() > name.size() && variable[name.size()] == '=' && variable.starts_with(name))
      return std::string(variable.substr(name.size() + 1));
    rest.remove_prefix(std::min(variable.size() + 1, rest.size()));
  }
  return std::nullopt;
}

std::string ReadProcCommand(pid_t pid) {
  std::string command = ReadProc(pid, "cmdline", 4000);
  while (!command.empty() && command.back() == '\0') command.pop_back();
  std::replace(command.begin(), command.end(), '\0', ' ');
  return command;
}

bool HandlesSignal(pid_t pid, int number) {
  return HasSignal(ReadProc(pid, "status", kMostStatusBytes), "SigCgt", number);
}

SignalState StateOfSignal(pid_t pid, int number) {
  SignalState state;
  const Folder folder(opendir(fmt::format("/proc/{}/task", pid).c_str()));
  while (folder) {
    const dirent* const entry = readdir(folder.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] == '.') continue;
    const std::string status =
        ReadProc(pid, fmt::format("task/{}/status", entry->d_name).c_str(), kMostStatusBytes);
    state.blocking += HasSignal(status, "SigBlk", number) ? 1 : 0;
    state.is_pending = state.is_pending || HasSignal(status, "SigPnd", number) ||
                       HasSignal(status, "ShdPnd", number);
  }
  return state;
}

bool HasOpen(pid_t pid, const std::string& path) {
  const std::string links = fmt::format("/proc/{}/fd", pid);
  const Folder folder(opendir(links.c_str()));
  while (folder) {
    const dirent* const entry = readdir(folder.get());
    if (entry == nullptr) break;
    char target[4096];
    const ssize_t size = readlink((links + "/" + entry->d_name).c_str(), target, sizeof target);
    if (size > 0 && std::string_view(target, static_cast<std::size_t>(size)) == path) return true;
  }
  return false;
}

std::optional<int> KeptStatus(int handle) {
  PidfdInfo info{};
  info.mask = kInfoOfExit;
  if (ioctl(handle, _IOWR(0xFF, 11, PidfdInfo), &info) != 0 || (info.mask & kInfoOfExit) == 0)
    return std::nullopt;
  return info.exit_code;
}

std::int64_t EpochUsOfTicks(std::int64_t ticks) {
  // Read once: equal ticks are equal times.
  static const std::int64_t machine_started_us = [] {
    timespec now{}, up{};
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    return (now.tv_sec - up.tv_sec) * 1'000'000 + (now.tv_nsec - up.tv_nsec) / 1000;
  }();
  return machine_started_us + ticks * 1'000'000 / sysconf(_SC_CLK_TCK);
}

}  // namespace tlparse
