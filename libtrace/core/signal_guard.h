// Keeps a signal that a failing write raises in this thread from killing the process, the host's
// signals from threads of ours, and a thread that is cancelled from being unwound in the middle.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <ctime>

namespace libtrace::detail {

// Blocks `number` (SIGXFSZ of a file size limit, SIGPIPE of a closed connection) for its lifetime
// and swallows one that arrived meanwhile, unless it had been pending before. Such signals go to
// the thread that wrote, so that no other thread sees them. errno is kept.
class SignalGuard {
 public:
  explicit SignalGuard(int number, bool is_needed = true) {
    if (!is_needed) return;
    sigset_t pending;
    sigemptyset(&set_);
    sigaddset(&set_, number);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, number) == 1;
    is_blocked_ = pthread_sigmask(SIG_BLOCK, &set_, &previous_) == 0;
  }
  ~SignalGuard() {
    if (!is_blocked_) return;
    const int saved = errno;
    if (!was_pending_) {
      const timespec none{};
      sigtimedwait(&set_, nullptr, &none);
    }
    pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
    errno = saved;
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  sigset_t set_{};
  sigset_t previous_{};
  bool is_blocked_ = false;
  bool was_pending_ = false;
};

// Blocks all signals for its lifetime: a thread that is started meanwhile gets none of the host's.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    is_blocked_ = pthread_sigmask(SIG_SETMASK, &all, &previous_) == 0;
  }
  ~AllSignalsBlocked() {
    if (is_blocked_) pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
  }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t previous_{};
  bool is_blocked_ = false;
};

// pthread_cancel ends this thread only after the scope: unwinding it through a function that is
// noexcept would end the process.
class NotCancelled {
 public:
  NotCancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous_); }
  ~NotCancelled() { pthread_setcancelstate(previous_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int previous_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace libtrace::detail
