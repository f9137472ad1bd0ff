// A forked child of a program that uses nothing of the library but what its parts with locks need: it
// must not take itself for its parent.
#include <sys/wait.h>
#include <unistd.h>

#include "core/thread_id.h"

int main() {
  if (libtrace::detail::ProcessId() != static_cast<uint32_t>(getpid())) return 1;
  libtrace::detail::ThreadId();
  const pid_t child = fork();
  if (child == 0) {
    const bool is_right = libtrace::detail::ProcessId() == static_cast<uint32_t>(getpid()) &&
                          libtrace::detail::ThreadId() == static_cast<uint32_t>(gettid());
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 2;
}
