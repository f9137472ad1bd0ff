// Limits the memory for large texts of all threads of a report.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace tlparse {

// Thread-safe. A thread that holds a lease must not ask for a second one.
class MemoryBudget {
 public:
  class Lease {
   public:
    Lease() = default;
    Lease(MemoryBudget& budget, std::int64_t bytes) : budget_(&budget), bytes_(bytes) {}
    Lease(Lease&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}
    Lease& operator=(Lease&& other) noexcept {
      Release();
      budget_ = std::exchange(other.budget_, nullptr);
      bytes_ = other.bytes_;
      return *this;
    }
    ~Lease() { Release(); }
    void Release() {
      if (budget_ != nullptr) std::exchange(budget_, nullptr)->GiveBack(bytes_);
    }

   private:
    MemoryBudget* budget_ = nullptr;
    std::int64_t bytes_ = 0;
  };

  // Waits until the total with these bytes is below 32 MB, or nothing else is held: a larger text
  // is held alone. Texts below 1 MB need not wait.
  Lease Take(std::int64_t bytes) {
    if (bytes < kMinBytes) return {};
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_bytes_ == 0 || held_bytes_ + bytes <= kMostBytes; });
    held_bytes_ += bytes;
    return {*this, bytes};
  }

 private:
  static constexpr std::int64_t kMinBytes = 1 << 20;
  static constexpr std::int64_t kMostBytes = 32 << 20;

  void GiveBack(std::int64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      held_bytes_ -= bytes;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t held_bytes_ = 0;
};

}  // namespace tlparse
