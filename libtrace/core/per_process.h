// PerProcess: data that a forked child must not share with its parent. MadeOnce: what is made at its
// first use, without a lock that a child could inherit.
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

// The object at `place`, which `make` makes when it is first asked for; never destroyed, as it is used
// until the process ends. Instead of a static object in a function: a child that is forked while
// another thread makes that would wait for it for ever. Threads that come at the same time may make
// one each, of which one is kept.
template <class T, class Make>
T& MadeOnce(std::atomic<T*>& place, Make&& make) {
  T* known = place.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  std::unique_ptr<T> made(make());
  if (place.compare_exchange_strong(known, made.get())) return *made.release();
  return *known;
}
template <class T>
T& MadeOnce(std::atomic<T*>& place) {
  return MadeOnce(place, [] { return new T; });
}

}  // namespace libtrace::detail
