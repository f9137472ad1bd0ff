// Threads that share one piece of work.
#pragma once

#include <functional>

namespace tlparse {

// As many as this process may use cores, at least one.
int AvailableCores();

// Calls `work` on this thread and on `threads` - 1 others at the same time, and returns when all
// calls have returned. Fewer calls where the system gives no more threads: `work` must do all there
// is to do even if it is called once. `work` throws nothing.
void RunOnThreads(int threads, const std::function<void()>& work);

}  // namespace tlparse
