#include "report/task_pool.h"

#include <algorithm>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "store/database.h"

namespace tlparse {

void TaskPool::Add(Task task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_one();
}

void TaskPool::AddForLater(Task task) {
  const std::lock_guard lock(mutex_);
  later_.push_back(std::move(task));
  changed_.notify_one();
}

Result<void> TaskPool::Run(const std::string& path, int threads) {
  constexpr int kMaxThreads = 4;  // more only wait for the file system
  if (threads <= 0) {
    threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
  }
  std::vector<std::thread> workers;
  try {
    for (int i = 1; i < threads; ++i) workers.emplace_back([&] { OpenAndWork(path); });
  } catch (const std::exception&) {
    // No memory, or too many threads: those that there are do the work.
  }
  OpenAndWork(path);
  for (std::thread& worker : workers) worker.join();
  if (error_) return tl::unexpected<Error>(std::move(*error_));
  return {};
}

std::optional<TaskPool::Task> TaskPool::Take() {
  std::unique_lock lock(mutex_);
  // An empty list is not the end: a running task may add more.
  changed_.wait(lock,
                [this] { return !tasks_.empty() || !later_.empty() || running_ == 0 || error_; });
  if ((tasks_.empty() && later_.empty()) || error_) return std::nullopt;
  Task task = std::move(tasks_.empty() ? later_.front() : tasks_.back());
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

void TaskPool::OpenAndWork(const std::string& path) {
  try {
    Work(path);
  } catch (const std::bad_alloc&) {
    Fail({ErrorCode::kIo, "not enough memory for the report"});
  }
}

void TaskPool::Work(const std::string& path) {
  Result<Database> connection = Database::Open(path, Database::Mode::kReadOnly);
  if (!connection) return Fail(std::move(connection).error());
  // Every page is read about once, so a cache for each thread would only take memory. One read
  // transaction for all: without it every lookup would lock and unlock the file.
  Result<void> ready = connection->Execute("PRAGMA cache_size = -4096; BEGIN");
  if (!ready) return Fail(std::move(ready).error());
  while (std::optional<Task> task = Take()) Done((*task)(*connection));
}

}  // namespace tlparse
