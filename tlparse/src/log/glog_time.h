// The time in a record's prefix: local time without a year and without a zone
// (`V1121 08:30:01.123000`, torch/_logging/_internal.py), and how it becomes microseconds since
// the epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tlparse {

// Days from 1970-01-01 to a date of the proleptic Gregorian calendar.
std::int64_t DaysFromCivil(std::int64_t year, int month, int day);

// A prefix time: microseconds since 1 January 00:00 of an imagined leap year (such as 2000), so
// that every month, day and time of any year has one number, and numbers of one year are in order.
using PrefixTimeUs = std::int64_t;

// Reads "MMDD hh:mm:ss.ffffff" (exactly 20 characters); nothing if it is no such time (month 13,
// 31 April, hour 24; second 60 is accepted as leap second, 29 February too).
std::optional<PrefixTimeUs> ParsePrefixTime(std::string_view text);

// Whether `text` has the shape of such a time, whatever its digits say.
bool HasPrefixTimeShape(std::string_view text);

// Microseconds since 1 January 00:00 of `year`. 29 February of a year without one is taken as
// 1 March.
std::int64_t UsSinceNewYear(PrefixTimeUs time, std::int64_t year);

// How prefix times of one process become times since the epoch.
struct Calibration {
  PrefixTimeUs anchor_us;     // a prefix time …
  std::int32_t anchor_year;   // … and its local year
  std::int32_t utc_offset_s;  // local time minus UTC
  // Prefix time minus true time at the anchor, after the offset: the delay between an event and
  // its line in the log (plus what is wrong). 0 if only a modification time was known. Of several
  // possible anchors take the one nearest to 0.
  std::int64_t residual_us;
};

// From a prefix time and the true time (microseconds since the epoch, UTC) of nearly the same
// instant, e.g. the `ts` of a chromium_event and the prefix of its record. The offset is the
// multiple of 15 minutes, at most 14 hours, that explains the difference best: the two may differ
// by up to 7 minutes. The year may be the one before or after that of the true time (New Year).
// Nothing if no year and offset fit.
std::optional<Calibration> Calibrate(PrefixTimeUs prefix_us, std::int64_t epoch_us);

// From a prefix time and the modification time of the file: the latest year in which the local time
// is not later than the modification time plus one day (clocks and zones differ). For 29 February
// the latest such leap year. The zone stays unknown: local time is taken as `utc_offset_s`.
// Give the last prefix time of the file; an early one is as good if the file covers less than a
// year.
Calibration CalibrateByModificationTime(PrefixTimeUs prefix_us, std::int64_t mtime_us,
                                        std::int32_t utc_offset_s = 0);

// Microseconds since the epoch, UTC. The year is the one that brings `time` nearest to the anchor,
// so a log may cross New Year in either direction from it as long as it covers less than half a
// year.
std::int64_t ToEpochUs(const Calibration& calibration, PrefixTimeUs time);

}  // namespace tlparse
