#include "inputs/torch_logs/tracebacks.h"

#include <algorithm>
#include <charconv>

#include "artifacts/common/text/python_traceback.h"
#include "base/ascii.h"
#include "inputs/torch_logs/number_after.h"
#include "log/glog_prefix.h"

namespace tlparse {
namespace {

constexpr std::string_view kTraceback = "Traceback (most recent call last):";
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

// "failed (exitcode: -9) local_rank: 5 (pid: 2630) of binary: …", which torchrun logs before its report.
std::optional<LauncherFailure> LoggedFailure(std::string_view line, std::int64_t number) {
  const std::size_t at = line.find("failed (exitcode: ");
  if (at == line.npos) return std::nullopt;
  line.remove_prefix(at);
  LauncherFailure failure;
  failure.line = number;
  failure.exit_code = NumberAfter(line, "(exitcode: ");
  failure.local_rank = NumberAfter(line, ") local_rank: ");
  failure.pid = NumberAfter(line, "(pid: ");
  if (!failure.exit_code || !failure.local_rank || !failure.pid) return std::nullopt;
  return failure;
}

// What C++ and kernels of a device print says nothing of a traceback behind it:
// "[E616 02:08:15.931621754 TCPStore.cpp:318] …", "…/ScatterGatherKernel.cu:365: operator(): block: […] Assertion `…` failed."
bool IsOfCxx(std::string_view line) {
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

}  // namespace

// What Python, torch.multiprocessing and Dynamo write behind the line of an exception.
bool LastTraceback::Continues(std::string_view line) const {
  if (line.starts_with(' ') || line.starts_with('\t')) return true;
  // "backend='inductor' raised:", "ncclRemoteError: …", "Last error:" and what it was.
  if (IsOfException(line) || line == "Last error:" || before_ == "Last error:") return true;
  if (line == kTraceback)
    return before_.ends_with("exception occurred:") || before_.ends_with("following exception:") ||
           before_.ends_with("terminated with the following error:");
  for (const std::string_view begin :
       {"During handling of the above exception", "The above exception was the direct cause",
        "-- Process ", "from user code:", "Set TORCH", "You can suppress this exception",
        "Hint: ", "Explanation: ", "Developer debug context: ", "For more details",
        "CUDA kernel errors might", "HIP kernel errors might", "For debugging consider passing",
        "Compile with `TORCH_USE_", "Exception raised from ", "frame #"})
    if (line.starts_with(begin)) return true;
  return false;
}

void LastTraceback::Add(std::string_view text, std::int64_t number, bool is_of_log) {
  const std::string_view line = TrimEnd(text);
  const bool is_header = line == kTraceback;
  if (state_ == State::kBehind && !line.empty() && !Continues(line)) state_ = State::kNone;
  if (state_ == State::kNone && is_header && !SaysWhatFollows(before_)) {
    found_ = {number, {}};
    state_ = State::kFrames;
  } else if (state_ == State::kBehind && is_header) {
    state_ = State::kFrames;
  } else if (state_ == State::kFrames && !line.empty() && !line.starts_with(' ')) {
    state_ = State::kBehind;
  }
  if (state_ != State::kNone && found_.text.size() + text.size() < kMostTracebackBytes)
    found_.text.append(text).append("\n");
  if (!line.empty()) before_ = is_of_log ? std::string_view() : line.substr(0, kMostTracebackBytes);
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
    failures.emplace_back().line = number;
    return true;
  }
  if (!is_in_report_) {
    const std::optional<LauncherFailure> logged = LoggedFailure(line, number);
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
  if (line == kRootCause || LoggedFailure(line, 0)) return true;
  const std::optional<RankPrefix> prefix = ParseRankPrefix(line);
  return prefix && line.substr(prefix->length) == " Traceback (most recent call last):";
}

}  // namespace tlparse
