#include "runner/hang_dump.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
#include "base/plural.h"
#include "runner/proc_file.h"
#include "runner/program_output.h"

namespace tlparse {

namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kStep(20);
constexpr std::chrono::milliseconds kLongestStack(1500);
constexpr std::chrono::seconds kLongestDump(6);
constexpr std::chrono::seconds kLongestSilence(10);  // of py-spy
constexpr std::size_t kMostSpied = 64;

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

// Of faulthandler `  File "train.py", line 14 in wait`, of py-spy `    wait (train.py:14)`.
std::optional<Frame> FrameOf(std::string_view line) {
  constexpr std::string_view kFile = "  File \"", kLine = "\", line ", kIn = " in ";
  constexpr std::string_view kIndent = "    ", kOpens = " (", kColon = ":";
  const auto text = [&](std::size_t from, std::size_t to) {
    return std::string(line.substr(from, to - from));
  };
  if (line.starts_with(kFile)) {
    const std::size_t number = line.find(kLine), in = line.find(kIn, number);
    if (in == std::string_view::npos) return std::nullopt;
    return Frame{text(kFile.size(), number), text(number + kLine.size(), in),
                 text(in + kIn.size(), line.size())};
  }
  if (!line.starts_with(kIndent) || !line.ends_with(')')) return std::nullopt;
  const std::size_t opens = line.find(kOpens), colon = line.rfind(kColon);
  if (opens == std::string_view::npos || colon == std::string_view::npos || colon < opens)
    return std::nullopt;
  return Frame{text(opens + kOpens.size(), colon), text(colon + 1, line.size() - 1),
               text(kIndent.size(), opens)};
}

// The stack of the main thread: the last one that faulthandler writes, one with a name of py-spy.
std::string_view MainThread(std::string_view stacks) {
  if (const std::size_t at = stacks.find(": \"MainThread\"\n"); at != std::string_view::npos) {
    stacks.remove_prefix(at);
    return stacks.substr(0, stacks.find("\nThread "));
  }
  return stacks.substr(std::min(stacks.rfind("hread 0x"), stacks.size()));
}

// Where the main thread is: in the code of the user, and which function of a library that has
// called. The innermost frame comes first.
std::string MainFrame(std::string_view stacks) {
  stacks = MainThread(stacks);
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

// py-spy, which needs no help of the process but the right to trace it.
class Spy {
 public:
  explicit Spy(ProcessWatch& watch) : watch_(watch) {}

  // The stacks of a Python process; empty: it gave none.
  std::string StacksOf(pid_t pid) {
    if (!is_installed_ || asked_ >= kMostSpied) return {};
    ++asked_;
    StartedProgram spy;
    watch_.StartBeside([&] {
      spy =
          StartProgram({"py-spy", "dump", "--full-filenames", "--pid", std::to_string(pid)}, true);
      return spy.pid;
    });
    is_installed_ = spy.pid > 0;
    if (!is_installed_) return {};
    std::string text = ReadOutput(spy, kLongestSilence);
    const int status = watch_.WaitBeside(spy.pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
    if (complaint_.empty()) complaint_ = text.substr(0, text.find('\n'));
    return {};
  }
  bool is_installed() const { return is_installed_; }
  const std::string& complaint() const { return complaint_; }  // the first, in its words

 private:
  ProcessWatch& watch_;
  bool is_installed_ = true;
  std::size_t asked_ = 0;
  std::string complaint_;
};

void Append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

void AddStacks(const RecordPlaces& places, ProcessWatch& watch, HangReport& report) {
  std::size_t taken = 0, without = 0;
  Spy spy(watch);
  for (const WatchedProcess& process : watch.Processes()) {
    if (process.ended_us) continue;
    // The file is open where our hook was loaded and the program has not closed it.
    const bool listens =
        HandlesSignal(process.pid, StackSignal()) && HasOpen(process.pid, places.stacks);
    std::string stacks = listens ? TakeStacks(process, places.stacks) : std::string();
    if (stacks.empty()) {
      stacks = spy.StacksOf(process.pid);
      Append(places.stacks, stacks);
    }
    if (stacks.empty() && listens)
      report.missing.push_back(Whose(process) + ": it wrote no Python stack");
    if (stacks.empty()) {
      without += listens ? 0 : 1;
      continue;
    }
    const std::string frame = MainFrame(stacks);
    ++taken;
    report.taken.push_back(Whose(process) +
                           (frame.empty() ? ": Python stacks" : " is at " + frame));
  }
  if (taken > 0) report.taken.push_back("all Python stacks are in " + places.stacks);
  if (without == 0) return;
  report.missing.push_back(fmt::format(
      "{} without a Python stack: no Python, or the hook of tlparse run is not loaded in it{}",
      Count(without, "process"),
      spy.is_installed() ? "; py-spy: " + spy.complaint() : ", and there is no py-spy"));
}

}  // namespace

HangReport TakeHangDump(const RecordPlaces& places, ProcessWatch& watch, const std::string& why) {
  HangReport report;
  report.time_us = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  report.why = why;
  const std::map<std::string, std::uintmax_t> before = FilesOf(places.recorded);
  const std::size_t asked = places.pipes.empty() ? 0 : AskRecorders(places.pipes);
  AddStacks(places, watch, report);
  if (asked == 0) {
    report.missing.emplace_back("no flight recorder listens");
    return report;
  }
  const std::size_t dumps = WaitForDumps(places.recorded, before, asked);
  if (dumps > 0)
    report.taken.push_back(fmt::format("{} of the flight recorder", Count(dumps, "dump")));
  if (dumps < asked)
    report.missing.push_back(
        fmt::format("{} gave no dump", Count(asked - dumps, "flight recorder")));
  return report;
}

}  // namespace tlparse
