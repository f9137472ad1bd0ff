#include "inputs/torch_logs/collected_line.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "artifacts/common/text/python_traceback.h"
#include "base/ascii.h"
#include "inputs/torch_logs/vllm.h"

namespace tlparse {
namespace {

constexpr int kMostMarks = 6;
constexpr std::size_t kMostNamed = 20'000;

bool Consume(std::string_view& text, const re2::RE2& pattern, std::string* first = nullptr,
             std::string* second = nullptr) {
  re2::StringPiece rest(text.data(), text.size());
  const bool is_there = first == nullptr    ? re2::RE2::Consume(&rest, pattern)
                        : second == nullptr ? re2::RE2::Consume(&rest, pattern, first)
                                            : re2::RE2::Consume(&rest, pattern, first, second);
  if (is_there) text.remove_prefix(text.size() - rest.size());
  return is_there;
}

// A time of a build server, of Docker or of Kubernetes, the latter with the stream.
bool TakeTime(std::string_view& text) {
  static const re2::RE2 kTime(
      R"(\[?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)\]? (?:std(?:out|err) [FP] )?)");
  return text.size() > 20 && (text[0] == '[' || text[0] == '2') && Consume(text, kTime);
}

// torchrun, mpirun or Kubernetes.
bool TakeBracketed(std::string_view& text, CollectedLine& line) {
  static const re2::RE2 kTorchrun(R"(\[([A-Za-z_-]+)(\d+)\]:)"),
      kMpirun(R"(\[\d+,(\d+)\]<std(?:out|err)>: ?)"), kPod(R"(\[pod/([\w.-]+)/[\w.-]+\] )");
  std::string name, number;
  if (text.starts_with("[rank")) return false;  // PyTorch's own
  if (Consume(text, kTorchrun, &name, &number)) {
    line.process = fmt::format("Local rank {}", number);
    std::int64_t local_rank = 0;
    if (re2::RE2::FullMatch(number, R"((\d+))", &local_rank)) line.local_rank = local_rank;
    return true;
  }
  if (Consume(text, kMpirun, &number)) {
    line.process = fmt::format("Process {} of mpirun", number);
    return true;
  }
  return Consume(text, kPod, &line.process);
}

// What names the process. Most lines have nothing in front: a look at their first characters is enough.
bool TakeName(std::string_view& text, CollectedLine& line) {
  static const re2::RE2 kSrun(R"( *(\d+): )"), kCompose(R"(([A-Za-z][\w.-]*) +\| )"),
      kSyslog(R"([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ ([^\s\[\]:]+)\[(\d+)\]: )"),
      kRay(R"(\((?:([^()]+) )?pid=(\d+)(?:, ip=[\w.:]+)?\) ?)");
  constexpr std::size_t kLongestName = 64;
  std::string name, number;
  if (text[0] == '[') return TakeBracketed(text, line);
  if (text[0] == ' ' || IsDigit(text[0])) {
    if (!Consume(text, kSrun, &number)) return false;
    line.process = fmt::format("Task {} of srun", number);
    return true;
  }
  const bool is_pid = text[0] == '(' ? !ParseVllmLine(text) && Consume(text, kRay, &name, &number)
                                     : text.size() > 3 && text[3] == ' ' && IsUpperCase(text[0]) &&
                                           Consume(text, kSyslog, &name, &number);
  if (is_pid) line.process = fmt::format("{} (pid {})", name.empty() ? "Process" : name, number);
  return is_pid || (text.substr(0, kLongestName).find(" | ") != text.npos &&
                    Consume(text, kCompose, &line.process));
}

// Behind the progress bar of tqdm, which ends no line: "100%|███| 2/2 [00:38<00:00, 19.26s/it]Traceback …".
std::string_view WithoutProgress(std::string_view text) {
  const bool has_return = text.find('\r') != text.npos;
  if (const std::size_t at = has_return ? text.rfind('\r') : text.npos;
      at != text.npos && at + 1 < text.size())
    text.remove_prefix(at + 1);
  const std::size_t bar = text.find("%|");
  if (bar == text.npos) return text;
  for (const std::string_view end : {"s/it]", "it/s]"})
    if (const std::size_t at = text.find(end, bar);
        at != text.npos && at + end.size() < text.size())
      text.remove_prefix(at + end.size());
  return text;
}

}  // namespace

CollectedLine LineUnwrapper::Unwrap(std::string_view text) {
  static const re2::RE2 kColour("\x1b\\[[0-9;]*[A-Za-z]");
  CollectedLine line;
  text = WithoutProgress(text);
  // Behind "ERROR: Unexpected segmentation fault encountered in worker.\n" PyTorch writes the end of its string.
  while (text.starts_with('\0')) text.remove_prefix(1);
  for (int i = 0; i < kMostMarks && !text.empty(); ++i) {
    if (text[0] == '\x1b') {
      std::string plain(text);
      re2::RE2::GlobalReplace(&plain, kColour, "");
      plain_ = std::move(plain);
      text = plain_;
    }
    const bool has_time = TakeTime(text);
    line.has_time |= has_time;
    if (!has_time && !TakeName(text, line)) break;
  }
  if (line.process.empty()) TakeLearned(text, line);
  line.text = text;
  return line;
}

// "job-worker-1: Traceback (most recent call last):": what stands in front of other lines as well is a mark.
void LineUnwrapper::TakeLearned(std::string_view& text, CollectedLine& line) {
  constexpr std::string_view kTracebackHeader = "Traceback (most recent call last):";
  constexpr std::size_t kLongestMark = 64, kMostMarksLearned = 1024;
  if (text.size() > kTracebackHeader.size() && text.ends_with(kTracebackHeader)) {
    const std::string_view mark = text.substr(0, text.size() - kTracebackHeader.size());
    const bool is_log = ParseVllmLine(text).has_value() || mark.starts_with("[rank") ||
                        mark.find_first_of(" \t") < mark.size() - 1 || IsLetter(mark.back());
    if (!is_log && mark.size() <= kLongestMark && learned_.size() < kMostMarksLearned)
      learned_.emplace(mark);
  }
  if (learned_.empty()) return;
  // Of marks that begin alike the longest is the last in order.
  auto mark = learned_.upper_bound(text);
  while (mark != learned_.begin()) {
    --mark;
    if (text.starts_with(*mark)) {
      text.remove_prefix(mark->size());
      // Marks of quoted text are no names: "> ".
      if (std::any_of(mark->begin(), mark->end(), IsAlphanumeric))
        line.process = mark->substr(0, mark->find_last_not_of(" :|") + 1);
      return;
    }
    if (mark->empty() || mark->front() != (text.empty() ? '\0' : text.front())) return;
  }
}

void ProcessTracebacks::Add(const CollectedLine& line, std::int64_t number, bool is_of_log) {
  const bool is_known = processes_.size() < kMostNamed || processes_.contains(line.process);
  if (!is_known) return;
  Process& process = processes_[line.process];
  process.has_plain |= !line.has_time && !line.text.empty();
  const bool has_own_time = line.has_time && process.has_plain;
  const auto add = [&](std::string_view text) {
    process.last.Add(text, number, is_of_log, has_own_time);
  };
  if (!process.rich.Add(line.text, add)) add(line.text);
  process.local_rank = line.local_rank;
}

bool EndsWithTraceback(std::string_view text) {
  LineUnwrapper unwrapper;
  ProcessTracebacks tracebacks;
  while (!text.empty()) tracebacks.Add(unwrapper.Unwrap(NextLine(text)), 0);
  for (const auto& [name, process] : tracebacks.processes())
    if (process.last.found() != nullptr || !process.last.others().empty()) return true;
  return false;
}

}  // namespace tlparse
