#include "inputs/torch_logs/abort_text.h"

#include <algorithm>
#include <array>

#include "artifacts/common/text/python_stack.h"
#include "base/ascii.h"
#include "base/utf8.h"
#include "log/glog_prefix.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostAbortBytes = 2000;
constexpr std::size_t kMostAborts = 100;
constexpr int kMostLinesBetween = 20;  // of other processes
constexpr std::size_t kMostFaultBytes = 100'000;
constexpr std::string_view kFatal = "Fatal Python error: ";
constexpr std::string_view kThrown = "terminate called after throwing an instance of '";
constexpr std::string_view kWhat = "  what():  ";

// Of glibc, of libstdc++, of LLVM.
constexpr std::array<std::string_view, 14> kBegins = {"free(): ",
                                                      "malloc(): ",
                                                      "realloc(): ",
                                                      "malloc_consolidate(): ",
                                                      "munmap_chunk(): ",
                                                      "double free or corruption",
                                                      "corrupted size vs. prev_size",
                                                      "corrupted double-linked list",
                                                      "*** stack smashing detected ***",
                                                      "*** buffer overflow detected ***",
                                                      "terminate called without an active",
                                                      "pure virtual method called",
                                                      "LLVM ERROR: ",
                                                      "Fatal Python error: "};

// "…/ScatterGatherKernel.cu:365: operator(): block: [6250,0,0], thread: [126,0,0] Assertion `i < n` failed.", of which each
// thread prints one: the place and the assertion.
std::string DeviceAssertionOf(std::string_view line) {
  const std::size_t begin = line.find("] Assertion `"), source = line.find(".cu:");
  if (begin == line.npos || source == line.npos || source > begin) return {};
  const std::size_t end = line.find("` failed", begin);
  if (end == line.npos) return {};
  const std::size_t name = line.rfind('/', source) + 1;  // 0: no folder
  const std::string_view place = line.substr(name, line.find(": ", source) - name);
  return std::string(place) + ": " + std::string(line.substr(begin + 2, end + 8 - begin - 2));
}

// "python: tokens.cc:9: long clean(long): Assertion `n < 10' failed." without program and function.
std::string AssertionOf(std::string_view line) {
  const std::size_t quoted = line.find(": Assertion `");
  const std::size_t begin = quoted == line.npos ? line.find(": Assertion '") : quoted;
  if (begin == line.npos || line.find("' failed", begin) == line.npos) return {};
  const std::string_view before = line.substr(0, begin);
  std::size_t end = before.find(':');
  while (end != before.npos) {
    std::size_t digits = end + 1;
    while (digits < before.size() && IsDigit(before[digits])) ++digits;
    if (digits > end + 1 && before.substr(digits).starts_with(": ")) {
      end = digits;
      break;
    }
    end = before.find(':', end + 1);
  }
  const std::string_view assertion = line.substr(begin + 2);
  if (end == before.npos) return std::string(assertion);
  std::string_view place = before.substr(0, end);
  if (const std::size_t program = place.rfind(": "); program != place.npos)
    place.remove_prefix(program + 2);
  return std::string(place) + ": " + std::string(assertion);
}

std::string TextOfLine(std::string_view line) {
  if (line.starts_with(kThrown)) {
    line.remove_prefix(kThrown.size());
    return std::string(line.substr(0, line.find('\'')));
  }
  for (const std::string_view begin : kBegins) {
    if (!line.starts_with(begin)) continue;
    return std::string(line);
  }
  constexpr std::string_view kCheckFailed = "] Check failed: ";  // glog
  if (const std::size_t check = line.find(kCheckFailed);
      line.starts_with('F') && check != line.npos) {
    line.remove_suffix(line.size() - 1 - line.find_last_not_of(' '));
    return std::string(line.substr(line.rfind(' ', check) + 1));
  }
  std::string of_device = DeviceAssertionOf(line);
  return of_device.empty() ? AssertionOf(line) : of_device;
}

}  // namespace

// Of the stacks: "Current thread 0x00007f (most recent call first):", "  File "a.py", line 3 in f".
bool AbortTexts::AddToFault(std::string_view line) {
  if (fault_.empty()) return false;
  const bool is_of_stack = line.empty() || line.starts_with("  ") ||
                           line.starts_with("Thread 0x") || line.starts_with("Current thread 0x");
  if (is_of_stack && fault_.size() + line.size() < kMostFaultBytes)
    fault_.append(line).append("\n");
  if (!is_of_stack) End();
  return is_of_stack;
}

void AbortTexts::End() {
  if (fault_.empty()) return;
  const Fault fault = FaultOf(fault_);
  texts.back().signal = fault.signal;
  texts.back().stopped_at = SanitizeUtf8(fault.at);
  texts.back().fault_thread = SanitizeUtf8(fault.thread);
  fault_.clear();
}

bool AbortTexts::Add(std::string_view line, std::int64_t number) {
  std::optional<std::int64_t> rank;
  if (const std::optional<RankPrefix> prefix = ParseRankPrefix(line)) {
    rank = prefix->rank;
    line.remove_prefix(prefix->length);
    if (line.starts_with(' ')) line.remove_prefix(1);
  }
  if (lines_to_what_ > 0 && line.starts_with(kWhat) && texts.back().rank == rank) {
    lines_to_what_ = 0;
    texts.back().text += ": " + SanitizeUtf8(line.substr(kWhat.size(), kMostAbortBytes));
    return true;
  }
  lines_to_what_ = std::max(0, lines_to_what_ - 1);
  if (AddToFault(line)) return true;
  if (line.starts_with(kFatal) && FaultOf(line).signal != 0 && texts.size() < kMostAborts) {
    texts.push_back({number, rank, {}});
    fault_.assign(line).append("\n");
    return true;
  }
  std::string text = TextOfLine(line);
  if (text.empty() || texts.size() >= kMostAborts) return false;
  text.resize(std::min(text.size(), kMostAbortBytes));
  if (!texts.empty() && texts.back().text == text && texts.back().rank == rank) return true;
  texts.push_back({number, rank, SanitizeUtf8(text)});
  if (line.starts_with(kThrown)) lines_to_what_ = kMostLinesBetween;
  return true;
}

}  // namespace tlparse
