#include "core/loss_ledger.h"

#include <unistd.h>

#include "core/clock.h"
#include "libtrace/json.h"

namespace libtrace {

std::string_view ToString(LossKind kind) noexcept {
  constexpr std::string_view kNames[] = {
      "queue_full",        "write_failed", "open_failed",    "builder_failed",
      "payload_too_large", "reentrant",    "bad_record_key", "not_written_at_exit",
      "bad_option",        "bad_encoding", "limited",
  };
  static_assert(std::size(kNames) == kLossKindCount);
  return kNames[static_cast<size_t>(kind)];
}

namespace detail {

void LossLedger::Lost(LossKind kind, std::string_view record, std::string_view message,
                      uint64_t count) noexcept {
  Count(kind, record, message, count);
  has_unlogged_.store(true, std::memory_order_relaxed);
  const auto index = static_cast<size_t>(kind);
  if ((reported_.load(std::memory_order_relaxed) >> index & 1) == 0) {
    unreported_.fetch_or(1u << index, std::memory_order_relaxed);
  }
}

void LossLedger::LeftOut(std::string_view record) noexcept {
  Count(LossKind::kLimited, record, "a limit that the program or LIBTRACE_LIMITS sets", 1);
}

bool LossLedger::HasLeftOutForLong() const noexcept {
  constexpr int64_t kPauseNs = 10'000'000'000;
  return SteadyNs() - taken_at_ns_.load(std::memory_order_relaxed) > kPauseNs;
}

void LossLedger::Count(LossKind kind, std::string_view record, std::string_view message,
                       uint64_t count) noexcept {
  const auto index = static_cast<size_t>(kind);
  counts_[index].fetch_add(count, std::memory_order_relaxed);
  try {
    const std::lock_guard lock(mutex_);
    if (messages_[index].empty()) messages_[index] = message;
    const int64_t now_us = NowUs();
    if (first_us_ == 0) first_us_ = now_us;
    last_us_ = now_us;
    auto it = unlogged_by_record_.find(record);
    if (it == unlogged_by_record_.end()) {
      const bool is_full = unlogged_by_record_.size() >= kMaxNames;
      it = unlogged_by_record_.try_emplace(is_full ? "(other)" : std::string(record), 0).first;
    }
    it->second += count;
  } catch (...) {  // no memory: the count above is right all the same
  }
}

void LossLedger::LostReentrant() noexcept {
  counts_[static_cast<size_t>(LossKind::kReentrant)].fetch_add(1, std::memory_order_relaxed);
  has_unlogged_.store(true, std::memory_order_relaxed);
}

void LossLedger::Warn(LossKind kind, std::string_view message) noexcept {
  const auto index = static_cast<size_t>(kind);
  try {
    const std::lock_guard lock(mutex_);
    if (!messages_[index].empty()) messages_[index] += "; ";
    messages_[index] += message;
  } catch (...) {
  }
  unreported_.fetch_or(1u << index, std::memory_order_relaxed);
}

void LossLedger::ReportNow() noexcept {
  const uint32_t bits = unreported_.exchange(0);
  const uint32_t fresh = bits & ~reported_.fetch_or(bits);
  for (size_t i = 0; i < kLossKindCount; ++i) {
    if ((fresh >> i & 1) == 0) continue;
    try {
      std::string message;
      {
        const std::lock_guard lock(mutex_);
        message = messages_[i];
      }
      if (on_error_) {
        on_error_(static_cast<LossKind>(i), message);
        continue;
      }
      message.insert(0, "libtrace: ").append("\n");
      // One line, once; nothing to be done if stderr is closed.
      [[maybe_unused]] const auto written = write(STDERR_FILENO, message.data(), message.size());
    } catch (...) {  // the host's callback threw: its loss
    }
  }
}

std::string LossLedger::TakeUnlogged() noexcept {
  taken_at_ns_.store(SteadyNs(), std::memory_order_relaxed);
  const bool has_lost = has_unlogged_.exchange(false, std::memory_order_relaxed);
  if (!has_lost && !has_unlogged_left_out()) return {};
  try {
    const std::lock_guard lock(mutex_);
    std::string text;
    JsonWriter json(text, JsonStyle::kLinePerToken);
    json.BeginObject().Key("losses").BeginArray();
    for (size_t i = 0; i < kLossKindCount; ++i) {
      const uint64_t total = counts_[i].load(std::memory_order_relaxed);
      if (total == logged_counts_[i]) continue;
      json.BeginObject()
          .Field("kind", ToString(static_cast<LossKind>(i)))
          .Field("record_count", total - logged_counts_[i])
          .Field("total_record_count", total)
          .Field("reason", messages_[i])
          .EndObject();
      logged_counts_[i] = total;
      if (i == static_cast<size_t>(LossKind::kLimited))
        logged_left_out_count_.store(total, std::memory_order_relaxed);
    }
    json.EndArray().Field("by_record", unlogged_by_record_);
    json.Field("first_us", first_us_).Field("last_us", last_us_).EndObject();
    unlogged_by_record_.clear();
    first_us_ = last_us_ = 0;
    return text;
  } catch (...) {
    return {};
  }
}

}  // namespace detail
}  // namespace libtrace
