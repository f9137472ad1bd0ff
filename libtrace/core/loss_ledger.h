// Counts records that could not be written; reports them to the host once per kind, and to the log.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "libtrace/loss.h"

namespace libtrace::detail {

// Thread-safe; noexcept throughout.
class LossLedger {
 public:
  using Callback = std::function<void(LossKind, const std::string&)>;
  explicit LossLedger(Callback on_error)
      : on_error_(std::move(on_error)), taken_at_ns_(SteadyNs()) {}

  // `record` names the lost record: its key, or the name of an artifact. Takes a short lock, makes
  // no callback.
  void Lost(LossKind kind, std::string_view record, std::string_view message,
            uint64_t count = 1) noexcept;
  // A record that Options::limits leaves out. The log says so at the end and at most every 10 s: not
  // between any two records that are written.
  void LeftOut(std::string_view record) noexcept;
  // From a signal handler or a sink: counts and nothing else.
  void LostReentrant() noexcept;
  // A problem that is not a loss.
  void Warn(LossKind kind, std::string_view message) noexcept;

  // Reports kinds that were not reported yet to the host. Hold no lock.
  void Report() noexcept {
    if (unreported_.load(std::memory_order_relaxed) != 0) ReportNow();
  }

  bool has_unlogged() const {
    return has_unlogged_.load(std::memory_order_relaxed) ||
           (has_unlogged_left_out() && HasLeftOutForLong());
  }
  bool has_unlogged_at_end() const {
    return has_unlogged_.load(std::memory_order_relaxed) || has_unlogged_left_out();
  }
  // Payload of `libtrace_loss`: all since the last call. "" if there is nothing.
  std::string TakeUnlogged() noexcept;

  uint64_t count(LossKind kind) const {
    return counts_[static_cast<size_t>(kind)].load(std::memory_order_relaxed);
  }

 private:
  void ReportNow() noexcept;
  void Count(LossKind kind, std::string_view record, std::string_view message,
             uint64_t count) noexcept;
  bool has_unlogged_left_out() const {
    return count(LossKind::kLimited) != logged_left_out_count_.load(std::memory_order_relaxed);
  }
  bool HasLeftOutForLong() const noexcept;

  static constexpr size_t kMaxNames = 64;

  Callback on_error_;
  std::atomic<uint64_t> counts_[kLossKindCount]{};
  std::atomic<uint32_t> unreported_{0};  // bits by kind
  std::atomic<uint32_t> reported_{0};
  std::atomic<bool> has_unlogged_{false};
  std::atomic<uint64_t> logged_left_out_count_{0};
  std::atomic<int64_t> taken_at_ns_;  // steady clock

  std::mutex mutex_;  // guards what follows
  std::string messages_[kLossKindCount];
  uint64_t logged_counts_[kLossKindCount]{};
  std::map<std::string, uint64_t, std::less<>> unlogged_by_record_;
  int64_t first_us_ = 0;
  int64_t last_us_ = 0;
};

}  // namespace libtrace::detail
