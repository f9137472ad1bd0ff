// The lives of blocks, of the events of one device in their order; and the peak.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

namespace tlparse::memory {

struct Life {
  std::int64_t address = 0;
  std::int64_t size_bytes = 0;
  std::optional<std::int64_t> alloc_ordinal = {};
  std::optional<std::int64_t> free_ordinal = {};
  std::optional<std::int64_t> alloc_ns = {};
  std::optional<std::int64_t> free_ns = {};
  std::optional<std::int64_t> site_id = {};
};

// Sums of what a damaged file may hold: they end at 2^62 bytes instead of overflowing.
inline std::int64_t AddBytes(std::int64_t sum, std::int64_t bytes) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  std::int64_t result = 0;
  if (__builtin_add_overflow(sum, bytes, &result)) return bytes > 0 ? kMost : -kMost;
  return std::min(std::max(result, -kMost), kMost);
}

class Lives {
 public:
  // More blocks than that at once are not followed: IsFull.
  static constexpr std::size_t kMostAlive = std::size_t{1} << 20;

  // `ended` takes each life when it ends; it may be called once for each call below.
  explicit Lives(std::function<void(const Life&)> ended) : ended_(std::move(ended)) {}

  bool IsFull() const { return alive_.size() >= kMostAlive; }

  // A block begins to live. Where one lives already, its free is missing: it ends here.
  void Begin(const Life& life) {
    Raise(life.size_bytes);
    const auto [entry, is_new] = alive_.try_emplace(life.address, life);
    if (!is_new) {
      End(entry->second, *life.alloc_ordinal, life.alloc_ns);
      ++replaced_;
      entry->second = life;
    }
    Note(*life.alloc_ordinal, life.alloc_ns);
  }
  // The block at `address` ends. One that is not known was allocated before the first event, and had
  // `size_bytes`.
  void End(std::int64_t address, std::int64_t size_bytes, std::int64_t ordinal,
           std::optional<std::int64_t> time_ns) {
    const auto found = alive_.find(address);
    if (found != alive_.end()) {
      End(found->second, ordinal, time_ns);
      alive_.erase(found);
      return;
    }
    Life life{.address = address, .size_bytes = size_bytes};
    before_bytes_ = AddBytes(before_bytes_, size_bytes);
    End(life, ordinal, time_ns);
  }
  // What the allocator holds grew or shrank.
  void Reserve(std::int64_t bytes) {
    reserved_ = AddBytes(reserved_, bytes);
    if (reserved_ > most_reserved_) most_reserved_ = reserved_;
  }

  const std::unordered_map<std::int64_t, Life>& alive() const { return alive_; }
  // Relative to what was alive, or reserved, before the first event.
  std::int64_t end_delta() const { return now_; }
  std::int64_t peak_delta() const { return peak_; }
  std::int64_t reserved_delta() const { return reserved_; }
  std::int64_t most_reserved_delta() const { return most_reserved_; }
  std::int64_t reserved_at_peak_delta() const { return reserved_at_peak_; }
  std::int64_t peak_ordinal() const { return peak_ordinal_; }
  std::optional<std::int64_t> peak_ns() const { return peak_ns_; }
  // Of blocks that were allocated before the first event and freed later.
  std::int64_t before_bytes() const { return before_bytes_; }
  // Allocations at an address that was alive.
  std::int64_t replaced() const { return replaced_; }

 private:
  void Raise(std::int64_t bytes) { now_ = AddBytes(now_, bytes); }
  void End(Life& life, std::int64_t ordinal, std::optional<std::int64_t> time_ns) {
    life.free_ordinal = ordinal;
    life.free_ns = time_ns;
    Raise(-life.size_bytes);
    ended_(life);
  }
  void Note(std::int64_t ordinal, std::optional<std::int64_t> time_ns) {
    if (now_ <= peak_) return;
    peak_ = now_;
    peak_ordinal_ = ordinal;
    peak_ns_ = time_ns;
    reserved_at_peak_ = reserved_;
  }

  std::function<void(const Life&)> ended_;
  std::unordered_map<std::int64_t, Life> alive_;  // by address
  std::int64_t now_ = 0, peak_ = 0, peak_ordinal_ = -1;
  std::optional<std::int64_t> peak_ns_;
  std::int64_t reserved_ = 0, most_reserved_ = 0, reserved_at_peak_ = 0;
  std::int64_t before_bytes_ = 0, replaced_ = 0;
};

}  // namespace tlparse::memory
