#include "log/glog_time.h"

#include <algorithm>
#include <cstddef>

#include "base/ascii.h"

namespace tlparse {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;
constexpr std::int64_t kDayUs = 86'400 * kSecondUs;
constexpr std::int64_t kOffsetStepUs = 15 * 60 * kSecondUs;
constexpr std::int64_t kMaxOffsetUs = 14 * 3600 * kSecondUs;
// About the years -1199 to 5138: times outside are from a damaged log.
constexpr std::int64_t kMaxEpochUs = 100'000'000'000 * kSecondUs;
constexpr std::int64_t kLeapDayUs = 59 * kDayUs;  // 29 February

// Days before each month of a leap year.
constexpr int kDaysBefore[13] = {0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, 366};

bool IsLeapYear(std::int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

bool IsLeapDay(PrefixTimeUs time) { return time >= kLeapDayUs && time < kLeapDayUs + kDayUs; }

// Local microseconds since 1970-01-01 00:00 local time.
std::int64_t LocalUs(PrefixTimeUs time, std::int64_t year) {
  return DaysFromCivil(year, 1, 1) * kDayUs + UsSinceNewYear(time, year);
}

std::int64_t FloorDivide(std::int64_t value, std::int64_t divisor) {
  return value / divisor - (value % divisor < 0 ? 1 : 0);
}

// The year (UTC) of a time since the epoch. 400 years have 146,097 days; the quotient below is
// right or one too small, as a year's fraction is never rounded up.
std::int64_t YearOf(std::int64_t epoch_us) {
  const std::int64_t days = FloorDivide(epoch_us, kDayUs);
  std::int64_t year = 1970 + FloorDivide(days * 400, 146'097) - 1;
  while (DaysFromCivil(year + 1, 1, 1) <= days) ++year;
  return year;
}

// The number that `count` digits spell, or -1.
int Digits(std::string_view text, std::size_t position, std::size_t count) {
  int value = 0;
  for (std::size_t i = position; i < position + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

}  // namespace

std::int64_t DaysFromCivil(std::int64_t year, int month, int day) {
  const std::int64_t before = year - 1;
  const std::int64_t days_before_year =
      before * 365 + FloorDivide(before, 4) - FloorDivide(before, 100) + FloorDivide(before, 400);
  constexpr std::int64_t kDaysBefore1970 = 719'162;
  const int skipped = month > 2 && !IsLeapYear(year) ? 1 : 0;
  return days_before_year - kDaysBefore1970 + kDaysBefore[month - 1] - skipped + day - 1;
}

std::optional<PrefixTimeUs> ParsePrefixTime(std::string_view text) {
  if (text.size() != 20 || text[4] != ' ' || text[7] != ':' || text[10] != ':' || text[13] != '.') {
    return std::nullopt;
  }
  const int month = Digits(text, 0, 2), day = Digits(text, 2, 2);
  const int hour = Digits(text, 5, 2), minute = Digits(text, 8, 2), second = Digits(text, 11, 2);
  const int microsecond = Digits(text, 14, 6);
  if (month < 1 || month > 12 || day < 1 || day > kDaysBefore[month] - kDaysBefore[month - 1] ||
      hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 ||
      microsecond < 0) {
    return std::nullopt;
  }
  const std::int64_t days = kDaysBefore[month - 1] + day - 1;
  return ((days * 24 + hour) * 60 + minute) * 60 * kSecondUs + second * kSecondUs + microsecond;
}

bool HasPrefixTimeShape(std::string_view text) {
  constexpr std::string_view kShape = "0000 00:00:00.000000";
  return std::equal(text.begin(), text.end(), kShape.begin(), kShape.end(),
                    [](char c, char shape) { return shape == '0' ? IsDigit(c) : c == shape; });
}

std::int64_t UsSinceNewYear(PrefixTimeUs time, std::int64_t year) {
  if (time < kLeapDayUs || IsLeapYear(year)) return time;
  return IsLeapDay(time) ? time : time - kDayUs;
}

std::optional<Calibration> Calibrate(PrefixTimeUs prefix_us, std::int64_t epoch_us) {
  if (epoch_us < -kMaxEpochUs || epoch_us > kMaxEpochUs) return std::nullopt;
  std::optional<Calibration> best;
  const std::int64_t year_of_epoch = YearOf(epoch_us);
  for (std::int64_t year = year_of_epoch - 1; year <= year_of_epoch + 1; ++year) {
    if (IsLeapDay(prefix_us) && !IsLeapYear(year)) continue;
    const std::int64_t difference_us = LocalUs(prefix_us, year) - epoch_us;
    const std::int64_t offset_us =
        FloorDivide(difference_us + kOffsetStepUs / 2, kOffsetStepUs) * kOffsetStepUs;
    if (offset_us < -kMaxOffsetUs || offset_us > kMaxOffsetUs) continue;
    best = Calibration{prefix_us, static_cast<std::int32_t>(year),
                       static_cast<std::int32_t>(offset_us / kSecondUs), difference_us - offset_us};
  }
  return best;  // at most one year fits: years are 365 days apart, offsets 28 hours
}

Calibration CalibrateByModificationTime(PrefixTimeUs prefix_us, std::int64_t mtime_us,
                                        std::int32_t utc_offset_s) {
  mtime_us = std::clamp(mtime_us, -kMaxEpochUs, kMaxEpochUs);
  const std::int64_t limit_us = mtime_us + utc_offset_s * kSecondUs + kDayUs;
  std::int64_t year = YearOf(limit_us);
  while (LocalUs(prefix_us, year) > limit_us || (IsLeapDay(prefix_us) && !IsLeapYear(year))) --year;
  return Calibration{prefix_us, static_cast<std::int32_t>(year), utc_offset_s, 0};
}

std::int64_t ToEpochUs(const Calibration& calibration, PrefixTimeUs time) {
  constexpr std::int64_t kHalfYearUs = 183 * kDayUs;
  std::int64_t year = calibration.anchor_year;
  if (time - calibration.anchor_us > kHalfYearUs) {
    --year;
  } else if (calibration.anchor_us - time > kHalfYearUs) {
    ++year;
  }
  return LocalUs(time, year) - calibration.utc_offset_s * kSecondUs;
}

}  // namespace tlparse
