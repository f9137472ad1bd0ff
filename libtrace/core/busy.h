// Whether this thread holds one of libtrace's locks: a signal handler or a sink that emits
// meanwhile must not wait for it.
#pragma once

namespace libtrace::detail {

inline constinit thread_local bool t_is_busy = false;

class BusyScope {
 public:
  BusyScope() { t_is_busy = true; }
  ~BusyScope() { t_is_busy = false; }
  BusyScope(const BusyScope&) = delete;
  BusyScope& operator=(const BusyScope&) = delete;
};

}  // namespace libtrace::detail
