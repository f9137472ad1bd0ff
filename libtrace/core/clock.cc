#include "core/clock.h"

#include <sys/single_threaded.h>
#include <time.h>

#include <atomic>
#include <cstring>

#include "libtrace/log_format.h"

namespace libtrace::detail {
namespace {

int64_t ReadClockNs(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void PutDigits(char* at, int count, int64_t value) {
  for (int i = count - 1; i >= 0; --i, value /= 10) at[i] = static_cast<char>('0' + value % 10);
}

// Month and day of a day number since 1970-01-01, by the usual shift to years that begin in March.
void MonthAndDay(int64_t days, int64_t& month, int64_t& day) {
  const int64_t z = days + 719'468;
  const int64_t era = (z >= 0 ? z : z - 146'096) / 146'097;
  const int64_t day_of_era = z - era * 146'097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted = (5 * day_of_year + 2) / 153;  // 0 = March
  day = day_of_year - (153 * shifted + 2) / 5 + 1;
  month = shifted < 10 ? shifted + 3 : shifted - 9;
}

// Quarter of an hour since 1970 in the high half, offset in the low one, so that both change
// together.
std::atomic<int64_t> g_offset{-1};

// False in a child whose parent had threads: one of them may have held the C library's lock.
std::atomic<bool> g_may_ask{true};
bool g_had_threads = false;  // written before a fork, read in its child

int32_t AskUtcOffsetS(int64_t unix_s) noexcept {
  const time_t time = static_cast<time_t>(unix_s);
  tm local{};
  const int64_t offset = localtime_r(&time, &local) != nullptr ? local.tm_gmtoff : 0;
  g_offset.store((unix_s / 900) << 32 | (offset & 0xFFFFFFFF), std::memory_order_relaxed);
  return static_cast<int32_t>(offset);
}

}  // namespace

int64_t NowNs() noexcept { return ReadClockNs(CLOCK_REALTIME); }
int64_t SteadyNs() noexcept { return ReadClockNs(CLOCK_MONOTONIC); }

int32_t UtcOffsetS(int64_t unix_s) noexcept {
  const int64_t seen = g_offset.load(std::memory_order_relaxed);
  if (seen != -1 && seen >> 32 == unix_s / 900) return static_cast<int32_t>(seen & 0xFFFFFFFF);
  if (g_may_ask.load(std::memory_order_relaxed)) return AskUtcOffsetS(unix_s);
  return seen == -1 ? 0 : static_cast<int32_t>(seen & 0xFFFFFFFF);
}

void RefreshUtcOffset() noexcept {
  if (g_may_ask.load(std::memory_order_relaxed)) AskUtcOffsetS(NowNs() / 1'000'000'000);
}

void PrepareClockForFork() noexcept {
  UtcOffsetS(NowNs() / 1'000'000'000);
  g_had_threads = __libc_single_threaded == 0;
}

void RestoreClockInChild() noexcept {
  if (g_had_threads) g_may_ask.store(false, std::memory_order_relaxed);
}

void PutPrefixTime(int64_t unix_us, char* to) {
  // "V1121 08:30:01." changes once a second.
  thread_local struct {
    int64_t second = -1;
    int32_t offset_s = 0;
    char text[kPrefixTimeSize + 2];
  } cache;
  const int64_t second = unix_us / 1'000'000;
  const int32_t offset_s = UtcOffsetS(second);
  if (cache.second != second || cache.offset_s != offset_s) {
    const int64_t local = second + offset_s;
    int64_t month = 0, day = 0;
    MonthAndDay(local / 86'400, month, day);
    const int64_t in_day = local % 86'400;
    std::memcpy(cache.text, "V0000 00:00:00.000000 ", kPrefixTimeSize);
    cache.text[0] = format::kTraceLevel;
    PutDigits(cache.text + 1, 2, month);
    PutDigits(cache.text + 3, 2, day);
    PutDigits(cache.text + 6, 2, in_day / 3600);
    PutDigits(cache.text + 9, 2, in_day / 60 % 60);
    PutDigits(cache.text + 12, 2, in_day % 60);
    cache.second = second;
    cache.offset_s = offset_s;
  }
  std::memcpy(to, cache.text, kPrefixTimeSize);
  PutDigits(to + 15, 6, unix_us % 1'000'000);
}

}  // namespace libtrace::detail
