#include "runner/hang_dump.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <thread>

#include "base/file_descriptor.h"
#include "runner/proc_file.h"

namespace tlparse {

namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kStep(20);
constexpr std::chrono::milliseconds kLongestStack(1500);
constexpr std::chrono::seconds kLongestDump(6);

std::string Counted(std::size_t count, std::string_view what, std::string_view plural) {
  return fmt::format("{} {}", count, count == 1 ? what : plural);
}

// Files of a folder, and how large they are.
std::map<std::string, std::uintmax_t> FilesOf(const std::string& folder) {
  std::map<std::string, std::uintmax_t> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unread;
    if (entry->is_regular_file(unread)) files[entry->path().string()] = entry->file_size(unread);
  }
  return files;
}

// How many recorders listen, each of which was asked.
std::size_t AskRecorders(const std::string& folder) {
  std::size_t asked = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unread;
    if (!entry->is_fifo(unread)) continue;
    // Nobody may read it.
    const FileDescriptor pipe(open(entry->path().c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    if (pipe.is_open() && write(pipe.get(), "1\n", 2) == 2) ++asked;
  }
  return asked;
}

// Waits until as many files are there, or have changed, as were asked for. How many.
std::size_t WaitForDumps(const std::string& folder,
                         const std::map<std::string, std::uintmax_t>& before, std::size_t asked) {
  const auto deadline = SteadyClock::now() + kLongestDump;
  std::size_t count = 0;
  while (true) {
    count = 0;
    for (const auto& [path, size] : FilesOf(folder)) {
      const bool is_dump = path.find("_rank_") != std::string::npos;
      const auto known = before.find(path);
      if (is_dump && size > 0 && (known == before.end() || known->second != size)) ++count;
    }
    if (count >= asked || SteadyClock::now() >= deadline) return count;
    std::this_thread::sleep_for(kStep);
  }
}

std::int64_t SizeOfFile(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? std::int64_t{status.st_size} : 0;
}

std::string TextFrom(const std::string& path, std::int64_t from) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(from);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Frame {
  std::string file, line, function;
  bool IsLibrary() const {
    for (const char* const folder : {"/site-packages/", "/dist-packages/", "/lib/python3"}) {
      if (file.find(folder) != std::string::npos) return true;
    }
    return false;
  }
};

//   File "train.py", line 14 in wait
std::optional<Frame> FrameOf(std::string_view line) {
  constexpr std::string_view kFile = "  File \"", kLine = "\", line ", kIn = " in ";
  const std::size_t number = line.find(kLine), in = line.find(kIn, number);
  if (!line.starts_with(kFile) || in == std::string_view::npos) return std::nullopt;
  return Frame{std::string(line.substr(kFile.size(), number - kFile.size())),
               std::string(line.substr(number + kLine.size(), in - number - kLine.size())),
               std::string(line.substr(in + kIn.size()))};
}

// Where the main thread is, which faulthandler writes last, the innermost frame first: in the code
// of the user, and which function of a library that has called.
std::string MainFrame(std::string_view stacks) {
  stacks.remove_prefix(std::min(stacks.rfind("hread 0x"), stacks.size()));
  std::string called;
  while (!stacks.empty()) {
    const std::string_view line = stacks.substr(0, stacks.find('\n'));
    stacks.remove_prefix(std::min(line.size() + 1, stacks.size()));
    const std::optional<Frame> frame = FrameOf(line);
    if (!frame) continue;
    const std::string place = fmt::format("{}:{} in {}", frame->file, frame->line, frame->function);
    if (!frame->IsLibrary())
      return called.empty() ? place : fmt::format("{}, which called {}", place, called);
    if (called.empty() || frame->function != "wrapper") called = frame->function;
  }
  return {};
}

// The stacks that the process writes; empty: none.
std::string TakeStacks(const WatchedProcess& process, const std::string& path) {
  const std::int64_t before = SizeOfFile(path);
  if (kill(process.pid, StackSignal()) != 0) return {};
  const auto deadline = SteadyClock::now() + kLongestStack;
  std::int64_t size = before;
  while (SteadyClock::now() < deadline) {
    std::this_thread::sleep_for(kStep);
    const std::int64_t now = SizeOfFile(path);
    if (now > before && now == size) break;  // it has written all
    size = now;
  }
  return TextFrom(path, before);
}

std::string Whose(const WatchedProcess& process) {
  return process.rank ? fmt::format("rank {} (pid {})", *process.rank, process.pid)
                      : fmt::format("pid {}", process.pid);
}

void AddStacks(const RecordPlaces& places, const std::vector<WatchedProcess>& processes,
               HangReport& report) {
  std::size_t taken = 0, without = 0;
  for (const WatchedProcess& process : processes) {
    if (process.ended_us) continue;
    // The file is open where our hook was loaded and the program has not closed it.
    if (!HandlesSignal(process.pid, StackSignal()) || !HasOpen(process.pid, places.stacks)) {
      ++without;
      continue;
    }
    const std::string stacks = TakeStacks(process, places.stacks);
    const std::string frame = MainFrame(stacks);
    if (stacks.empty()) {
      report.missing.push_back(Whose(process) + ": it wrote no Python stack");
      continue;
    }
    ++taken;
    report.taken.push_back(Whose(process) +
                           (frame.empty() ? ": Python stacks" : " is at " + frame));
  }
  if (taken > 0) report.taken.push_back("all Python stacks are in " + places.stacks);
  if (without > 0)
    report.missing.push_back(fmt::format(
        "{} without a Python stack: no Python, or the hook of tlparse run is not loaded in it",
        Counted(without, "process", "processes")));
}

}  // namespace

HangReport TakeHangDump(const RecordPlaces& places, const std::vector<WatchedProcess>& processes,
                        const std::string& why) {
  HangReport report;
  report.time_us = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  report.why = why;
  const std::map<std::string, std::uintmax_t> before = FilesOf(places.recorded);
  const std::size_t asked = places.pipes.empty() ? 0 : AskRecorders(places.pipes);
  AddStacks(places, processes, report);
  if (asked == 0) {
    report.missing.emplace_back("no flight recorder listens");
    return report;
  }
  const std::size_t dumps = WaitForDumps(places.recorded, before, asked);
  if (dumps > 0)
    report.taken.push_back(
        fmt::format("{} of the flight recorder", Counted(dumps, "dump", "dumps")));
  if (dumps < asked)
    report.missing.push_back(fmt::format(
        "{} gave no dump", Counted(asked - dumps, "flight recorder", "flight recorders")));
  return report;
}

}  // namespace tlparse
