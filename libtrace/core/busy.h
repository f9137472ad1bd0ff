// Whether this thread holds one of our locks: what emits meanwhile (a signal handler, a sink) must
// not wait for it.
#pragma once

#include <cerrno>

namespace libtrace::detail {

inline constinit thread_local bool t_is_busy = false;

class BusyScope {
 public:
  BusyScope() { t_is_busy = true; }
  ~BusyScope() { t_is_busy = false; }
  BusyScope(const BusyScope&) = delete;
  BusyScope& operator=(const BusyScope&) = delete;
};

// The host's errno survives whatever is done meanwhile.
class ErrnoScope {
 public:
  ErrnoScope() : saved_(errno) {}
  ~ErrnoScope() { errno = saved_; }
  ErrnoScope(const ErrnoScope&) = delete;
  ErrnoScope& operator=(const ErrnoScope&) = delete;

 private:
  int saved_;
};

}  // namespace libtrace::detail
