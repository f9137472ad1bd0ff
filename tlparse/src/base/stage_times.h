// CPU time of an ingest by stage, for --verbose and ./bench.sh: it shows how much more cores can
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
enum class Stage : std::uint8_t {
  kReading,
  kVerifying,
  kTyping,
  kWriting,
  kStoring,
  kFinishing,
  kTree,
  kPage
};
inline constexpr std::array<std::string_view, 8> kStageNames = {
    "reading", "verifying", "typing", "writing", "storing", "finishing", "tree", "page"};

// May be used by several threads at once.
class StageTimes {
 public:
  void Add(Stage stage, std::int64_t cpu_ns);
  double Seconds(Stage stage) const { return Get(sum_ns_, stage); }
  // The longest single step: more threads cannot make a stage faster than this.
  double LongestSeconds(Stage stage) const { return Get(longest_ns_, stage); }

 private:
  using Values = std::array<std::atomic<std::int64_t>, kStageNames.size()>;
  static double Get(const Values& values, Stage stage) {
    return static_cast<double>(values[static_cast<std::size_t>(stage)].load()) / 1e9;
  }
  Values sum_ns_{};
  Values longest_ns_{};
};

// Adds the CPU time of this thread during its lifetime. `times` may be null: nothing is measured.
class StageTimer {
 public:
  StageTimer(StageTimes* times, Stage stage);
  ~StageTimer();
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  StageTimes* times_;
  Stage stage_;
  std::int64_t start_ns_ = 0;
};

}  // namespace tlparse
