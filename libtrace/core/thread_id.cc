#include "core/thread_id.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace libtrace::detail {
namespace {

std::atomic<uint32_t> g_process_id{0};            // 0 = not asked yet
constinit thread_local uint32_t t_thread_id = 0;  // the same

// Here, not with the trace's handlers: a program that is linked statically and uses the stores of
// caches alone has no trace.
[[gnu::constructor(101)]] void RegisterForkHandler() {
  pthread_atfork(nullptr, nullptr, [] {
    g_process_id.store(0, std::memory_order_relaxed);
    t_thread_id = 0;
  });
}

}  // namespace

uint32_t ProcessId() noexcept {
  uint32_t id = g_process_id.load(std::memory_order_relaxed);
  if (id == 0) {
    id = static_cast<uint32_t>(getpid());
    g_process_id.store(id, std::memory_order_relaxed);
  }
  return id;
}

uint32_t ThreadId() noexcept {
  if (t_thread_id == 0) t_thread_id = static_cast<uint32_t>(gettid());
  return t_thread_id;
}

}  // namespace libtrace::detail
