// Tasks on a few threads, each with its own connection to one database.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"

namespace tlparse {

class Database;

// A task may add tasks. The one that was added last is taken first, so that what a task prepared is
// used up before the next one prepares more.
class TaskPool {
 public:
  using Task = std::function<Result<void>(Database&)>;

  // May be called by tasks, and before Run.
  void Add(Task task);

  // Runs all tasks, those added meanwhile too, on `threads` threads, 0: as many as pay off (the
  // caller's is one and uses `database`, which must not be in a transaction; the others open its
  // file again). The first error ends it: tasks that have not begun are dropped.
  Result<void> Run(Database& database, int threads);

 private:
  // The next task, or nothing if all are done (or one has failed).
  std::optional<Task> Take();
  void Done(Result<void> result);
  void Fail(Error error);
  Result<void> Begin(Database& database);
  void Work(Database& database);
  void OpenAndWork(const Database& database);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task> tasks_;
  std::size_t running_ = 0;
  std::optional<Error> error_;
};

}  // namespace tlparse
