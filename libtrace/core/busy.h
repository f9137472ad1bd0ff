// Whether this thread holds one of libtrace's locks: a signal handler or a sink that emits
// meanwhile must not wait for it.
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

// Restores the host's errno at the end of the scope.
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
