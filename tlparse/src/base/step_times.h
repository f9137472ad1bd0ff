// CPU time of an ingest by step, for --verbose and ./bench.sh: it shows how much more cores can
// help.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tlparse {

// Reading, typing and writing handle one window at a time, verifying several. Storing is the part
// of writing that runs on a thread of its own (see WriteBehind). Finishing is the work in the
// database after that (indexes, joins). The last two are tasks of the report.
enum class LoadStep : std::uint8_t {
  kReading,
  kVerifying,
  kTyping,
  kWriting,
  kStoring,
  kFinishing,
  kTree,
  kPage
};
inline constexpr std::array<std::string_view, 8> kStepNames = {
    "reading", "verifying", "typing", "writing", "storing", "finishing", "tree", "page"};

// May be used by several threads at once.
class StepTimes {
 public:
  void Add(LoadStep step, std::int64_t cpu_ns);
  double Seconds(LoadStep step) const { return Get(sum_ns_, step); }
  // The longest single task of a step: more threads cannot make a step faster than this.
  double LongestSeconds(LoadStep step) const { return Get(longest_ns_, step); }

 private:
  using Values = std::array<std::atomic<std::int64_t>, kStepNames.size()>;
  static double Get(const Values& values, LoadStep step) {
    return static_cast<double>(values[static_cast<std::size_t>(step)].load()) / 1e9;
  }
  Values sum_ns_{};
  Values longest_ns_{};
};

// Adds the CPU time of this thread during its lifetime. `times` may be null: nothing is measured.
class StepTimer {
 public:
  StepTimer(StepTimes* times, LoadStep step);
  ~StepTimer();
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;

 private:
  StepTimes* times_;
  LoadStep step_;
  std::int64_t start_ns_ = 0;
};

}  // namespace tlparse
