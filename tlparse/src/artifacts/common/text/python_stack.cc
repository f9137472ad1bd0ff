#include "artifacts/common/text/python_stack.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "artifacts/common/text/python_traceback.h"

namespace tlparse {

namespace {

struct Frame {
  std::string file, line, function;
  // "<string>": of `python -c`.
  bool IsUsers() const { return file == "<string>" || file == "<stdin>" || IsUserFile(file); }
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

constexpr std::string_view kThread = "hread 0x";  // "Thread", "Current thread"

// The stack of the main thread: the last one that faulthandler writes, one with a name of py-spy.
std::string_view MainThread(std::string_view stacks) {
  if (const std::size_t at = stacks.find(": \"MainThread\"\n"); at != std::string_view::npos) {
    stacks.remove_prefix(at);
    return stacks.substr(0, stacks.find("\nThread "));
  }
  return stacks.substr(std::min(stacks.rfind(kThread), stacks.size()));
}

// Where a forked process of multiprocessing begins: what is outside of it is of its parent.
bool IsBeginOfProcess(const Frame& frame) {
  return frame.function == "_bootstrap" && frame.file.ends_with("/multiprocessing/process.py");
}

// By its name at the beginning (faulthandler.c: faulthandler_handlers); 0: none of its names.
int FatalSignal(std::string_view text) {
  constexpr std::pair<std::string_view, int> kNames[] = {{"Aborted", SIGABRT},
                                                         {"Bus error", SIGBUS},
                                                         {"Floating point exception", SIGFPE},
                                                         {"Illegal instruction", SIGILL},
                                                         {"Segmentation fault", SIGSEGV}};
  for (const auto& [name, signal] : kNames) {
    if (text.starts_with(name)) return signal;
  }
  return 0;
}

}  // namespace

std::string FrameOfThread(std::string_view stacks) {
  std::string called;
  while (!stacks.empty()) {
    const std::string_view line = stacks.substr(0, stacks.find('\n'));
    stacks.remove_prefix(std::min(line.size() + 1, stacks.size()));
    const std::optional<Frame> frame = FrameOf(line);
    if (!frame) continue;
    if (IsBeginOfProcess(*frame)) return {};
    const std::string place = fmt::format("{}:{} in {}", frame->file, frame->line, frame->function);
    if (frame->IsUsers())
      return called.empty() ? place : fmt::format("{}, which called {}", place, called);
    // A debugger waits for input: its own functions say less.
    const bool is_debugger = frame->file.ends_with("/bdb.py") || frame->file.ends_with("/pdb.py");
    if (is_debugger)
      called = "pdb";
    else if (called.empty() || frame->function != "wrapper")
      called = frame->function;
  }
  return {};
}

std::string MainFrame(std::string_view stacks) { return FrameOfThread(MainThread(stacks)); }

bool IsInCollective(std::string_view stacks) {
  std::string_view stack = MainThread(stacks);
  bool is_in = false;
  while (!stack.empty()) {
    const std::string_view line = stack.substr(0, stack.find('\n'));
    stack.remove_prefix(std::min(line.size() + 1, stack.size()));
    const std::optional<Frame> frame = FrameOf(line);
    if (!frame) continue;
    if (frame->IsUsers()) return is_in;
    is_in |= frame->file.ends_with("torch/distributed/distributed_c10d.py") ||
             frame->file.ends_with("torch/distributed/_functional_collectives.py");
  }
  return false;
}

Fault FaultOf(std::string_view stacks) {
  constexpr std::string_view kFatal = "Fatal Python error: ", kCurrent = "Current thread 0x";
  const std::size_t fatal = stacks.rfind(kFatal);
  if (fatal == stacks.npos) return {{}, MainFrame(stacks), stacks.empty() ? 0 : SIGTERM};
  stacks.remove_prefix(fatal);
  const int signal = FatalSignal(stacks.substr(kFatal.size()));
  const std::size_t current = stacks.find(kCurrent);
  if (current == stacks.npos) return {"native", MainFrame(stacks), signal};
  const std::size_t end = stacks.find(kThread, current + kCurrent.size());
  if (end == stacks.npos) return {"main", MainFrame(stacks), signal};
  return {"python", FrameOfThread(stacks.substr(current, end - current)), signal};
}

std::vector<std::string> OtherFrames(std::string_view stacks, std::string_view whose) {
  std::map<std::string, int> counts;
  const std::size_t main = stacks.rfind(kThread);
  for (std::size_t at = stacks.find(kThread); at < main && main != stacks.npos;) {
    const std::size_t end = stacks.find(kThread, at + 1);
    if (std::string frame = FrameOfThread(stacks.substr(at, end - at)); !frame.empty())
      ++counts[std::move(frame)];
    at = end;
  }
  std::vector<std::string> frames;
  for (const auto& [frame, count] : counts)
    frames.push_back(fmt::format("{} other thread{} of {} {} at {}", count, count == 1 ? "" : "s",
                                 whose, count == 1 ? "is" : "are", frame));
  return frames;
}

}  // namespace tlparse
