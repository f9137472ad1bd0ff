// Runs one function on several threads.
#pragma once

#include <functional>

namespace tlparse {

// Number of cores that this process may use, at least one.
int AvailableCores();

// Calls `work` on this thread and on `threads` - 1 others at the same time, and returns when all
// calls have returned. There are fewer calls if the system refuses threads: `work` must do all of
// it even if it is called once. `work` throws nothing.
void RunOnThreads(int threads, const std::function<void()>& work);

}  // namespace tlparse
