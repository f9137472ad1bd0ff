// Keeps a write to a connection that the other side has closed from ending the process.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <ctime>

namespace tlparse {

// Blocks SIGPIPE in this thread for its lifetime, and discards one that arrives meanwhile. OpenSSL
// writes without MSG_NOSIGNAL.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigset_t pending;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &previous_);
  }
  ~NoPipeSignal() {
    const timespec none{};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &none);
    pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_{}, previous_{};
  bool was_pending_ = false;
};

}  // namespace tlparse
