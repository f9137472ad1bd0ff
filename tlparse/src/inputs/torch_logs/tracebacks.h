// What a job of several ranks prints to standard error when it fails: the tracebacks of exceptions that
// nothing caught, before each line of which PyTorch puts "[rankN]: ", and the report of
// torchrun, which names the failure that it saw first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inputs/torch_logs/launcher_line.h"

namespace tlparse {

struct PrintedTraceback {
  std::int64_t rank = 0;
  std::int64_t line = 0;  // 1-based: the first of it
  std::string text;       // without the prefixes; cut after kMostTracebackBytes
};
inline constexpr std::size_t kMostTracebackBytes = 50'000;

// A traceback without a rank, as Python writes it for the exception that ended a program. Only those
// that a text ends with count, and none behind a line that says what it is of: a finalizer ("Exception ignored
// in"), a log. Those of threads and of processes of multiprocessing, which Python names itself, count anywhere.
class LastTraceback {
 public:
  // `is_of_log`: PyTorch logged the line, which says nothing of a traceback behind it.
  // `has_time`: a time stood in front of it, as of no line of a traceback.
  void Add(std::string_view text, std::int64_t number, bool is_of_log = false,
           bool has_time = false);

  struct Found {
    std::int64_t line = 0;
    std::string text = {};
    std::optional<std::string> thread = {};  // its name
    bool is_of_child = false;                // of a process of multiprocessing
    bool is_of_launcher = false;  // a launcher said next that one of its processes has ended
  };
  // Of the lines so far, the last that they end with; null: they end with none.
  const Found* found() const {
    return state_ == State::kBehind && IsPrograms() ? &found_ : nullptr;
  }
  // Of threads and processes; those behind which a launcher said that a process has ended; and those behind which found() followed at once. In order.
  std::vector<Found> others() const;

 private:
  // kSkipped: the frames of one that counts for nothing.
  enum class State : std::uint8_t { kNone, kFrames, kBehind, kSkipped };
  bool IsPrograms() const { return !found_.thread && !found_.is_of_child; }
  bool Continues(std::string_view line) const;
  bool MayBeOfMessage(std::string_view line, bool is_of_log);
  void Begin(std::int64_t number);
  void Leave(std::string_view line, bool is_followed);

  Found found_;
  std::vector<Found> others_, followed_;
  State state_ = State::kNone;
  bool may_go_on_ = false;  // found_ was left behind a line that may be of its message
  int lines_behind_ = 0;    // since the message, that may be of it or of the program's launcher
  std::string before_;      // the last line that is not empty; empty behind an exception
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
