#include "report/task_pool.h"

#include <exception>
#include <new>
#include <utility>

#include "base/worker_threads.h"
#include "store/database.h"

namespace tlparse {

void TaskPool::Add(LoadStep step, Task task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back({step, std::move(task)});
  changed_.notify_one();
}

void TaskPool::AddForLater(LoadStep step, Task task) {
  const std::lock_guard lock(mutex_);
  later_.push_back({step, std::move(task)});
  changed_.notify_one();
}

Result<void> TaskPool::Run(Database& database, int threads) {
  if (threads <= 0) threads = AvailableCores();
  RunOnThreads(threads, [&] {
    Guarded([&] { threads == 1 ? Work(database) : OpenAndWork(database.path()); });
  });
  if (error_) return tl::unexpected<Error>(std::move(*error_));
  return {};
}

std::optional<TaskPool::TimedTask> TaskPool::Take() {
  std::unique_lock lock(mutex_);
  // An empty list is not the end: a running task may add more.
  changed_.wait(lock,
                [this] { return !tasks_.empty() || !later_.empty() || running_ == 0 || error_; });
  if ((tasks_.empty() && later_.empty()) || error_) return std::nullopt;
  TimedTask task = std::move(tasks_.empty() ? later_.front() : tasks_.back());
  tasks_.empty() ? later_.pop_front() : tasks_.pop_back();
  ++running_;
  return task;
}

void TaskPool::Done(Result<void> result) {
  const std::lock_guard lock(mutex_);
  --running_;
  if (!result && !error_) error_ = std::move(result).error();
  if (running_ == 0 || error_) changed_.notify_all();
}

void TaskPool::Fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  changed_.notify_all();
}

void TaskPool::Guarded(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    Fail({ErrorCode::kIo, "not enough memory for the report"});
  } catch (const std::exception& error) {
    Fail({ErrorCode::kInternal, error.what()});
  }
}

void TaskPool::OpenAndWork(const std::string& path) {
  Result<Database> connection = Database::Open(path, Database::Mode::kReadOnly);
  if (!connection) return Fail(std::move(connection).error());
  // Every page is read about once, so a cache for each thread would only take memory.
  if (Result<void> ready = connection->Execute("PRAGMA cache_size = -4096"); !ready)
    return Fail(std::move(ready).error());
  Work(*connection);
}

void TaskPool::Work(Database& database) {
  // One read transaction for all: without it every lookup would lock and unlock the file.
  if (Result<void> begun = database.Execute("BEGIN"); !begun) return Fail(std::move(begun).error());
  while (std::optional<TimedTask> task = Take()) {
    const StepTimer timer(times_, task->step);
    Done(task->run(database));
  }
  if (Result<void> ended = database.Execute("COMMIT"); !ended) Fail(std::move(ended).error());
}

}  // namespace tlparse
