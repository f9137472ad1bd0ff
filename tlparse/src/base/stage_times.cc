#include "base/stage_times.h"

#include <ctime>

namespace tlparse {

namespace {
std::int64_t ThreadCpuNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}
}  // namespace

void StageTimes::Add(Stage stage, std::int64_t cpu_ns) {
  const auto index = static_cast<std::size_t>(stage);
  sum_ns_[index] += cpu_ns;
  std::int64_t longest = longest_ns_[index].load();
  while (longest < cpu_ns && !longest_ns_[index].compare_exchange_weak(longest, cpu_ns)) {
  }
}

StageTimer::StageTimer(StageTimes* times, Stage stage)
    : times_(times), stage_(stage), start_ns_(times == nullptr ? 0 : ThreadCpuNs()) {}

StageTimer::~StageTimer() {
  if (times_ != nullptr) times_->Add(stage_, ThreadCpuNs() - start_ns_);
}

}  // namespace tlparse
