#include "base/remove_on_signal.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <mutex>
#include <utility>

namespace tlparse {
namespace {

constexpr std::array kSignals = {SIGHUP, SIGINT, SIGTERM};

// Read by the handler, which may do little: no locks, no memory.
std::array<std::atomic<const char*>, 8> paths{};
static_assert(std::atomic<const char*>::is_always_lock_free);

void RemoveAndDie(int signal) {
  // Directories last, when their files are gone. Each call fails for what is of the other sort. Again
  // while something is left: another thread may just have made a file.
  constexpr int kMostTimes = 100;
  bool is_left = true;
  for (int i = 0; i < kMostTimes && is_left; ++i) {
    is_left = false;
    for (int (*const remove)(const char*) : {unlink, rmdir}) {
      for (const std::atomic<const char*>& path : paths) {
        if (const char* name = path.load(); name != nullptr) remove(name);
      }
    }
    for (const std::atomic<const char*>& path : paths) {
      const char* const name = path.load();
      is_left = is_left || (name != nullptr && access(name, F_OK) == 0);
    }
  }
  // The handler is reset (SA_RESETHAND), so this is the end, with the status of the signal.
  raise(signal);
}

void Install() {
  for (const int signal : kSignals) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    action.sa_handler = RemoveAndDie;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

RemoveOnSignal::RemoveOnSignal(std::string path) : path_(std::move(path)), slot_(paths.size()) {
  static std::once_flag installed;
  std::call_once(installed, Install);
  for (std::size_t slot = 0; slot < paths.size() && slot_ == paths.size(); ++slot) {
    const char* free = nullptr;
    if (paths[slot].compare_exchange_strong(free, path_.c_str())) slot_ = slot;
  }
}

RemoveOnSignal::~RemoveOnSignal() {
  if (slot_ < paths.size()) paths[slot_].store(nullptr);
}

HoldSignals::HoldSignals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : kSignals) sigaddset(&held, signal);
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

HoldSignals::~HoldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace tlparse
