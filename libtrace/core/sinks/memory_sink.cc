#include "core/errno_scope.h"
#include "libtrace/sink.h"

namespace libtrace {

bool MemorySink::BeginRecord(uint64_t) {
  const bool is_first = !is_begun_;
  is_begun_ = true;
  return is_first;
}

std::shared_ptr<TraceSink> MemorySink::AfterFork() { return std::make_shared<MemorySink>(); }

void MemorySink::Write(std::string_view record) {
  const std::lock_guard lock(mutex_);
  records_.emplace_back(record);
}

std::vector<std::string> MemorySink::records() const {
  const detail::ErrnoScope keeps_errno;
  const std::lock_guard lock(mutex_);
  return records_;
}

std::string MemorySink::text() const {
  const detail::ErrnoScope keeps_errno;
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const std::string& record : records_) text += record;
  return text;
}

void MemorySink::Clear() {
  const std::lock_guard lock(mutex_);
  records_.clear();
}

bool CallbackSink::BeginRecord(uint64_t) {
  const bool is_first = !is_begun_;
  is_begun_ = true;
  return is_first;
}

std::shared_ptr<TraceSink> CallbackSink::AfterFork() {
  return std::make_shared<CallbackSink>(callback_);
}

void CallbackSink::Write(std::string_view record) { callback_(record); }

}  // namespace libtrace
