#include "core/record_limits.h"

#include "core/clock.h"

namespace libtrace::detail {

RecordLimits::RecordLimits(const std::vector<RecordLimit>& limits) {
  for (const RecordLimit& limit : limits) counters_[limit.kind].limit = limit;
}

bool RecordLimits::Admit(std::string_view kind) noexcept {
  const auto found = counters_.find(kind);
  if (found == counters_.end()) return true;
  Counter& counter = found->second;
  const uint64_t seen = counter.seen_count.fetch_add(1, std::memory_order_relaxed);
  if (counter.limit.one_of > 1 && seen % counter.limit.one_of != 0) return false;
  if (counter.limit.per_second == 0) return true;
  const auto second = static_cast<uint64_t>(SteadyNs() / 1'000'000'000) & UINT32_MAX;
  uint64_t last = counter.second_and_count.load(std::memory_order_relaxed);
  uint64_t next = 0;
  do {
    next = last >> 32 == second ? last + 1 : second << 32 | 1;
    if ((next & UINT32_MAX) > counter.limit.per_second) return false;
  } while (!counter.second_and_count.compare_exchange_weak(last, next, std::memory_order_relaxed));
  return true;
}

}  // namespace libtrace::detail
