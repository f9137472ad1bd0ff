// Runs a function on several threads, or on a new one.
#pragma once

#include <functional>
#include <thread>

#include "base/result.h"

namespace tlparse {

// Number of cores that this process may use, at least one.
int AvailableCores();

// Calls `work` on this thread and on `threads` - 1 others at the same time, and returns when all
// calls have returned. There are fewer calls if the system refuses threads, at least one: `work`
// must complete the task in any number of calls. `work` throws nothing.
void RunOnThreads(int threads, const std::function<void()>& work);

// A thread that runs `work`, which throws nothing. kIo: the system has no thread left.
Result<std::thread> StartThread(std::function<void()> work);

}  // namespace tlparse
