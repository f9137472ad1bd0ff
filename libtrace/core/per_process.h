// PerProcess: data that a forked child must not share with its parent.
#pragma once

#include <atomic>
#include <memory>

#include "core/thread_id.h"

namespace libtrace::detail {

// One T of each process. In a forked child a lock of its parent's may be held by a thread that the
// child does not have, and what it guards be half changed: the child gets a new T, and leaves the
// other one alone, its destructor included.
template <class T>
class PerProcess {
 public:
  PerProcess() : current_(new Slot(nullptr)) {}
  ~PerProcess() {
    Slot* const slot = current_.load();
    if (slot->process_id == ProcessId()) delete slot;
  }
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  // Throws std::bad_alloc in a child that has no memory for its own.
  T& get() const {
    Slot* seen = current_.load(std::memory_order_acquire);
    if (seen->process_id == ProcessId()) return seen->value;
    auto own = std::make_unique<Slot>(seen);
    if (current_.compare_exchange_strong(seen, own.get())) return own.release()->value;
    return seen->value;  // of another thread of this process, which came first
  }
  T* operator->() const { return &get(); }

 private:
  struct Slot {
    explicit Slot(Slot* before_fork_in) : before_fork(before_fork_in) {}
    const uint32_t process_id = ProcessId();
    Slot* const before_fork;  // reachable for leak checkers
    T value{};
  };

  mutable std::atomic<Slot*> current_;
};

}  // namespace libtrace::detail
