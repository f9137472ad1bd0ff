#include "base/worker_threads.h"

#include <fmt/core.h>
#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

namespace tlparse {

int AvailableCores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void RunOnThreads(int threads, const std::function<void()>& work) {
  std::vector<std::thread> others;
  try {
    for (int i = 1; i < threads; ++i) {
      others.emplace_back([&work] {
        pthread_setname_np(pthread_self(), "tlparse-worker");  // for tools that show threads
        work();
      });
    }
  } catch (const std::exception&) {
    // No memory, or too many threads: those that there are do the work.
  }
  work();
  for (std::thread& thread : others) thread.join();
}

Result<std::thread> StartThread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kIo, fmt::format("no thread can be started: {}", error.what()));
  }
}

}  // namespace tlparse
