#include "base/step_times.h"

#include <ctime>

namespace tlparse {

namespace {
std::int64_t ThreadCpuNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}
}  // namespace

void StepTimes::Add(LoadStep step, std::int64_t cpu_ns) {
  const auto index = static_cast<std::size_t>(step);
  sum_ns_[index] += cpu_ns;
  std::int64_t longest = longest_ns_[index].load();
  while (longest < cpu_ns && !longest_ns_[index].compare_exchange_weak(longest, cpu_ns)) {
  }
}

StepTimer::StepTimer(StepTimes* times, LoadStep step)
    : times_(times), step_(step), start_ns_(times == nullptr ? 0 : ThreadCpuNs()) {}

StepTimer::~StepTimer() {
  if (times_ != nullptr) times_->Add(step_, ThreadCpuNs() - start_ns_);
}

}  // namespace tlparse
