#include "runner/python_stacks.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "artifacts/common/text/python_stack.h"

namespace tlparse {

std::string TextFrom(const std::string& path, std::int64_t from) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(from);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Whose(const WatchedProcess& process) {
  return process.rank ? fmt::format("rank {} (pid {})", *process.rank, process.pid)
                      : fmt::format("pid {}", process.pid);
}

void AppendText(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

void TakeLastStacks(const RecordPlaces& places, std::vector<WatchedProcess>& processes) {
  for (WatchedProcess& process : processes) {
    // Where it had another code, or none, it had caught what sys.exit raises.
    if (!process.left || process.exit_code != process.left->exit_code) continue;
    process.at = FrameOfThread(process.left->stack);
    if (!process.raised) process.raised = std::move(process.left->raised);
  }
  if (places.ends.empty()) return;
  for (WatchedProcess& process : processes) {
    const bool is_known = process.signal || process.exit_code || !process.ended_us;
    if (is_known && !process.signal) continue;
    const std::string stacks = TextFrom(fmt::format("{}/{}", places.ends, process.pid), 0);
    Fault fault = FaultOf(stacks);
    // Its parent waited for it before its status was read.
    if (!is_known && fault.signal != 0) process.signal = fault.signal;
    if (!process.signal) continue;
    process.at = std::move(fault.at);
    process.fault_thread = fault.thread;
    if (!stacks.empty())
      AppendText(places.stacks, fmt::format("{}, which signal {} ended:\n{}\n", Whose(process),
                                            *process.signal, stacks));
  }
  std::error_code error;
  std::filesystem::remove_all(places.ends, error);
}

}  // namespace tlparse
