// What a job of several ranks prints to standard error when it fails: the tracebacks of exceptions that
// nothing caught, before each line of which PyTorch puts "[rankN]: ", and the report of
// torchrun, which names the failure that it saw first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tlparse {

struct PrintedTraceback {
  std::int64_t rank = 0;
  std::int64_t line = 0;  // 1-based: the first of it
  std::string text;       // without the prefixes; cut after kMostTracebackBytes
};
inline constexpr std::size_t kMostTracebackBytes = 50'000;

// The failure that torchrun saw first: what its report calls the root cause, or a line of a text without
// that report.
struct LauncherFailure {
  std::int64_t line = 0;
  std::optional<std::int64_t> rank, local_rank, pid;
  std::optional<std::int64_t> exit_code;  // -9: SIGKILL ended the process
  std::optional<std::int64_t> local_rank_of_report;
};

// A traceback without a rank, as Python writes it for the exception that ended a program. Only the one
// that a text ends with counts, and not behind a line that says what it is of: a thread, a finalizer
// ("Exception ignored in"), a log.
class LastTraceback {
 public:
  // `is_of_log`: PyTorch logged the line, which says nothing of a traceback behind it.
  void Add(std::string_view text, std::int64_t number, bool is_of_log = false);

  struct Found {
    std::int64_t line = 0;
    std::string text;
  };
  // Of the lines so far; null: they do not end with one.
  const Found* found() const { return state_ == State::kBehind ? &found_ : nullptr; }

 private:
  enum class State : std::uint8_t { kNone, kFrames, kBehind };
  bool Continues(std::string_view line) const;

  Found found_;
  State state_ = State::kNone;
  std::string before_;  // the last line that is not empty
};

// The lines of one file, in order.
class FailureText {
 public:
  // Whether the line is part of a traceback or of a report.
  bool Add(std::string_view line, std::int64_t number);
  // The rank of this local rank, where a report says it.
  std::optional<std::int64_t> RankOfLocal(std::optional<std::int64_t> local_rank) const;

  // In order of their first lines. A rank that a launcher started again may have several.
  std::vector<PrintedTraceback> tracebacks;
  std::vector<LauncherFailure> failures;  // one for each report, or for each line that has none

 private:
  bool AddToTraceback(std::string_view line, std::int64_t number);
  bool AddToReport(std::string_view line, std::int64_t number);

  bool is_in_report_ = false;
};

// Whether a line begins one of them.
bool BeginsFailureText(std::string_view line);

}  // namespace tlparse
