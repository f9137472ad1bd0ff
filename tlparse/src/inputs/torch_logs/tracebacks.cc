#include "inputs/torch_logs/tracebacks.h"

#include <algorithm>
#include <charconv>

#include "artifacts/common/text/python_traceback.h"
#include "base/ascii.h"
#include "inputs/torch_logs/launcher_line.h"
#include "inputs/torch_logs/number_after.h"
#include "log/glog_prefix.h"

namespace tlparse {
namespace {

constexpr std::string_view kTraceback = "Traceback (most recent call last):";
constexpr std::string_view kLastError = "Last error:";  // of NCCL
constexpr std::string_view kRootCause = "Root Cause (first observed failure):";

// The number behind "name      : "; nothing: another line.
std::optional<std::int64_t> MemberOf(std::string_view line, std::string_view name) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (!line.starts_with(name)) return std::nullopt;
  line.remove_prefix(name.size());
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (!line.starts_with(": ")) return std::nullopt;
  line.remove_prefix(2);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// What C++ and kernels of a device print says nothing of a traceback behind it:
// "[E616 02:08:15.931621754 TCPStore.cpp:318] …", "…/ScatterGatherKernel.cu:365: operator(): block: […] Assertion `…` failed."
bool IsOfCxx(std::string_view line) {
  if (line.starts_with("ERROR: Unexpected ") && line.find(" encountered in worker.") != line.npos)
    return true;
  for (const std::string_view source : {".cpp:", ".cu:"})
    if (const std::size_t at = line.find(source);
        at != line.npos && at + source.size() < line.size() && IsDigit(line[at + source.size()]))
      return true;
  return false;
}

// A line in front of a traceback: of a log, a thread, a finalizer, or of what caught the exception.
bool SaysWhatFollows(std::string_view line) {
  if (IsOfCxx(line)) return false;
  const std::string lower = InLowerCase(line);
  for (const std::string_view word : {"error", "exception", "fail", "caught", "warning:"})
    if (lower.find(word) != std::string::npos) return true;
  return lower.ends_with(':') || lower.ends_with("---");
}

// "torch._dynamo.exc.InternalTorchDynamoError: …", "ncclSystemError: …"
bool IsOfException(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return false;
  const std::string_view name = line.substr(0, colon);
  return (name.ends_with("Error") || name.ends_with("Exception")) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return IsNameCharacter(c) || c == '.'; });
}

// Behind it stands a traceback of the same exception.
bool IsChain(std::string_view line) {
  return line.ends_with("exception occurred:") || line.ends_with("following exception:") ||
         line.ends_with("terminated with the following error:");
}

}  // namespace

// What Python, torch.multiprocessing and Dynamo write behind the line of an exception.
bool LastTraceback::Continues(std::string_view line) const {
  if (line.starts_with(' ') || line.starts_with('\t')) return true;
  // "backend='inductor' raised:", "ncclRemoteError: …", "Last error:" and what it was.
  if (IsOfException(line) || line == kLastError || before_ == kLastError) return true;
  if (line == kTraceback) return IsChain(before_);
  for (const std::string_view begin :
       {"During handling of the above exception", "The above exception was the direct cause",
        "The actor ", "-- Process ", "from user code:", "Set TORCH",
        "You can suppress this exception",
        "Hint: ", "Explanation: ", "Developer debug context: ", "For more details",
        "CUDA kernel errors might", "HIP kernel errors might", "For debugging consider passing",
        "Compile with `TORCH_USE_", "Exception raised from ", "frame #"})
    if (line.starts_with(begin)) return true;
  return false;
}

// PyTorch's messages have lines of any form, and launchers print what they think of the end: a few lines are no
// output of a program that has caught the exception, if it had come through the whole program.
bool LastTraceback::MayBeOfMessage(std::string_view line, bool is_of_log) {
  constexpr int kMostLines = 20;
  std::string_view last(found_.text);  // of a chain: the ones before begin where they were caught
  last.remove_prefix(std::min(last.rfind(kTraceback), last.size()));
  NextLine(last);
  const std::optional<PythonFrame> frame = ParseFrameLine(NextLine(last));
  const bool is_of_program =
      frame && (frame->function == "<module>" || frame->file == "<frozen runpy>");
  const bool is_of_torch = found_.text.find("-packages/torch/") != std::string::npos;
  const bool is_of_launcher = found_.text.find("ChildFailedError") != std::string::npos;
  const bool is_logged = is_of_log || line.starts_with('[') || IsDigit(line[0]) ||
                         (line.size() > 4 && IsDigit(line[1]) && IsDigit(line[4]));
  return !is_logged && line != kTraceback && IsPrograms() && is_of_program && is_of_torch &&
         !is_of_launcher && ++lines_behind_ <= kMostLines;
}

void LastTraceback::Begin(std::int64_t number) {
  constexpr std::string_view kThread = "Exception in thread ", kProcess = "Process ";
  found_ = {number};
  may_go_on_ = false;
  state_ = State::kFrames;
  lines_behind_ = 0;
  if (before_.starts_with(kThread) && before_.ends_with(':'))
    found_.thread = before_.substr(kThread.size(), before_.size() - kThread.size() - 1);
  else if (before_.starts_with(kProcess) && before_.ends_with(':'))
    found_.is_of_child = true;
  else if (SaysWhatFollows(before_))
    state_ = State::kSkipped;
}

// At the end of one, before `line`. `is_followed`: by another, without a line between them. Where a launcher says next that a
// process has ended, those that followed each other are of processes that wrote by turns.
void LastTraceback::Leave(std::string_view line, bool is_followed) {
  const bool is_known = found_.thread || found_.text.find("/multiprocessing/process.py\", line ") !=
                                             std::string::npos;
  if (!IsPrograms() && is_known) others_.push_back(found_);
  if (IsPrograms()) followed_.push_back(found_);
  if (IsPrograms() && IsOfLauncher(line)) {
    for (Found& one : followed_) one.is_of_launcher = true;
    others_.insert(others_.end(), followed_.begin(), followed_.end());
  }
  if (!IsPrograms() || !is_followed) followed_.clear();
  state_ = State::kNone;
  may_go_on_ = IsPrograms();
}

std::vector<LastTraceback::Found> LastTraceback::others() const {
  std::vector<Found> all = others_;
  if (state_ == State::kBehind) {
    LastTraceback ended = *this;
    if (!IsPrograms()) ended.Leave({}, false);
    all = ended.others_;
    if (IsPrograms()) all.insert(all.end(), followed_.begin(), followed_.end());
  }
  return all;
}

void LastTraceback::Add(std::string_view text, std::int64_t number, bool is_of_log, bool has_time) {
  const std::string_view line = TrimEnd(text);
  const bool is_header = line == kTraceback;
  const bool is_inside = line.empty() || line.starts_with(' ');
  bool is_of_message = true;
  if (state_ == State::kBehind && !line.empty() && !Continues(line)) {
    const bool is_followed = is_header && lines_behind_ == 0;
    const bool may_be = !IsOfLauncher(line) && MayBeOfMessage(line, is_of_log || has_time);
    if (!may_be) Leave(line, is_followed);
    is_of_message = may_be && !found_.text.ends_with("\n\n");
  }
  const bool is_of_traceback = state_ != State::kNone;
  const bool goes_on = state_ == State::kBehind || (may_go_on_ && IsChain(before_));
  if (state_ == State::kNone && is_header && !goes_on) {
    Begin(number);
  } else if (is_header && goes_on) {
    if (state_ == State::kNone) found_.text += before_ + "\n\n";
    state_ = State::kFrames;
  } else if (state_ == State::kFrames && !is_inside) {
    state_ = State::kBehind;
  } else if (state_ == State::kSkipped && !is_inside && !is_header) {
    state_ = State::kNone;
  }
  const bool is_kept = state_ == State::kFrames || (state_ == State::kBehind && is_of_message);
  if (is_kept && found_.text.size() + text.size() < kMostTracebackBytes)
    found_.text.append(text).append("\n");
  const bool is_silent = is_of_log || (is_of_traceback && !IsChain(line) && line != kLastError);
  if (!line.empty()) before_ = is_silent ? std::string_view() : line.substr(0, kMostTracebackBytes);
}

bool FailureText::Add(std::string_view line, std::int64_t number) {
  return AddToTraceback(line, number) || AddToReport(line, number);
}

bool FailureText::AddToTraceback(std::string_view line, std::int64_t number) {
  const std::optional<RankPrefix> prefix = ParseRankPrefix(line);
  if (!prefix) return false;
  line.remove_prefix(prefix->length);
  if (!line.empty() && line[0] != ' ') return false;  // a line of a log
  if (!line.empty()) line.remove_prefix(1);
  const auto last =
      std::find_if(tracebacks.rbegin(), tracebacks.rend(),
                   [&](const PrintedTraceback& one) { return one.rank == prefix->rank; });
  const bool is_known = last != tracebacks.rend();
  // Another one is part of the same text if a sentence says that it belongs to the one before.
  const bool continues = is_known && TrimEnd(last->text).ends_with("exception occurred:");
  const bool follows =
      is_known && TrimEnd(last->text).ends_with("direct cause of the following exception:");
  if (line == kTraceback && !continues && !follows) {
    tracebacks.push_back({prefix->rank, number, std::string(line)});
    return true;
  }
  if (!is_known) return false;
  if (last->text.size() + line.size() < kMostTracebackBytes) last->text.append("\n").append(line);
  return true;
}

bool FailureText::AddToReport(std::string_view line, std::int64_t number) {
  if (line == kRootCause) {
    is_in_report_ = true;
    failures.push_back({.line = number, .launcher = "torchrun"});
    return true;
  }
  if (!is_in_report_) {
    const std::optional<LauncherFailure> logged = ParseLauncherLine(line, number);
    if (logged) failures.push_back(*logged);
    return logged.has_value();
  }
  if (line.starts_with("====")) is_in_report_ = false;
  LauncherFailure& failure = failures.back();
  if (const auto rank = MemberOf(line, "rank")) {
    failure.rank = rank;
    failure.local_rank_of_report = NumberAfter(line, "(local_rank: ");
  }
  if (const auto code = MemberOf(line, "exitcode")) {
    failure.exit_code = code;
    failure.pid = NumberAfter(line, "(pid: ");
    // It says more than the line that torchrun logged of this process.
    const auto is_logged = [&](const LauncherFailure& one) {
      return !one.rank && one.local_rank && one.pid == failure.pid;
    };
    failures.erase(std::remove_if(failures.begin(), failures.end() - 1, is_logged),
                   failures.end() - 1);
  }
  return true;
}

std::optional<std::int64_t> FailureText::RankOfLocal(std::optional<std::int64_t> local_rank) const {
  for (const LauncherFailure& one : failures)
    if (local_rank && one.local_rank_of_report == local_rank) return one.rank;
  return std::nullopt;
}

bool BeginsFailureText(std::string_view line) {
  if (line == kRootCause || ParseLauncherLine(line, 0)) return true;
  if (line.starts_with("Fatal Python error: ") || line.starts_with("Exception in thread "))
    return true;
  const std::optional<RankPrefix> prefix = ParseRankPrefix(line);
  return prefix && line.substr(prefix->length) == " Traceback (most recent call last):";
}

}  // namespace tlparse
