// What every function of the library does that asks the system or the C library for something: the
// host's errno is the same after it.
#pragma once

#include <cerrno>

namespace libtrace::detail {

// Restores the host's errno at the end of the scope. The first line of a public function, behind
// the test whether tracing is on where there is one; destructors that only destroy members have it
// too, and destroy these themselves.
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
