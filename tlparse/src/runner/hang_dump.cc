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

#include "artifacts/common/text/python_stack.h"
#include "base/file_descriptor.h"
#include "base/plural.h"
#include "runner/proc_file.h"
#include "runner/program_output.h"
#include "runner/python_stacks.h"

namespace tlparse {

namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kStep(20);
constexpr std::chrono::milliseconds kLongestStack(5000);
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

// Whether it cannot handle a signal: it is stopped, or has ended.
bool IsStopped(pid_t pid) {
  const std::optional<ProcStat> stat = ReadProcStat(pid);
  return !stat || std::string_view("TtZX").find(stat->state) != std::string_view::npos;
}

// The stacks that the process writes; empty: none.
std::string TakeStacks(const WatchedProcess& process, const std::string& path) {
  const std::int64_t before = SizeOfFile(path);
  const std::size_t blocking = StateOfSignal(process.pid, StackSignal()).blocking;
  if (kill(process.pid, StackSignal()) != 0) return {};
  const auto deadline = SteadyClock::now() + kLongestStack;
  do {
    std::this_thread::sleep_for(kStep);
    const SignalState state = StateOfSignal(process.pid, StackSignal());
    if (!state.is_pending && state.blocking <= blocking) break;  // it has written all
  } while (SteadyClock::now() < deadline && !IsStopped(process.pid));
  return TextFrom(path, before);
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
      AppendText(places.stacks, stacks);
    }
    if (stacks.empty() && listens)
      report.missing.push_back(Whose(process) + ": it wrote no Python stack");
    if (stacks.empty()) {
      without += listens ? 0 : 1;
      continue;
    }
    std::string frame = MainFrame(stacks);
    // "recv from rank 1", of the hook.
    const std::string peer = TextFrom(fmt::format("{}/peer_{}", places.pipes, process.pid), 0);
    const std::string call = peer.substr(0, peer.find(' '));
    if (!call.empty() && frame.ends_with(", which called " + call))
      frame += peer.substr(call.size());
    ++taken;
    report.taken.push_back(Whose(process) +
                           (frame.empty() ? ": Python stacks" : " is at " + frame));
    for (std::string& other : OtherFrames(stacks, Whose(process)))
      report.taken.push_back(std::move(other));
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
  // With its dump a process says whom it waits for.
  const std::size_t dumps = asked == 0 ? 0 : WaitForDumps(places.recorded, before, asked);
  AddStacks(places, watch, report);
  if (asked == 0) {
    report.missing.emplace_back("no flight recorder listens");
    return report;
  }
  if (dumps > 0)
    report.taken.push_back(fmt::format("{} of the flight recorder", Count(dumps, "dump")));
  if (dumps < asked)
    report.missing.push_back(
        fmt::format("{} gave no dump", Count(asked - dumps, "flight recorder")));
  return report;
}

}  // namespace tlparse
