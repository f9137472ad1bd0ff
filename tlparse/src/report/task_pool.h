// Tasks on a few threads, each with its own connection to one database.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/step_times.h"

namespace tlparse {

class Database;

// A task may add tasks. The one that was added last is run first, so that the data prepared by one
// task is used before another task prepares more.
class TaskPool {
 public:
  using Task = std::function<Result<void>(Database&)>;

  // `times` may be null; otherwise CPU time of the tasks is added to it.
  explicit TaskPool(StepTimes* times = nullptr) : times_(times) {}

  // May be called by tasks, and before Run.
  void Add(LoadStep step, Task task);
  // The same for a task that runs after all others. Several of them run in order.
  void AddForLater(LoadStep step, Task task);

  // Runs all tasks, those added meanwhile too, on `threads` threads, the caller's among them; 0: one
  // for each core. One thread uses `database`; of several, each opens it, and closes it before this
  // returns: to unmap a large file takes a while, which they spend at the same time. The first error
  // ends it: tasks that have not begun are dropped. kIo if memory runs out in a task, kInternal for
  // any other exception.
  Result<void> Run(Database& database, int threads);

 private:
  struct TimedTask {
    LoadStep step;
    Task run;
  };
  // The next task, or nothing if all are done (or one has failed).
  std::optional<TimedTask> Take();
  void Done(Result<void> result);
  void Fail(Error error);
  // Calls `work`; what it throws ends the pool.
  void Guarded(const std::function<void()>& work);
  void OpenAndWork(const std::string& path);
  void Work(Database& database);

  std::mutex mutex_;
  std::condition_variable changed_;
  StepTimes* const times_;
  std::vector<TimedTask> tasks_;
  std::deque<TimedTask> later_;
  std::size_t running_ = 0;
  std::optional<Error> error_;
};

}  // namespace tlparse
