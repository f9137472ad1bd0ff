#include "log/glog_time.h"

#include <ctime>
#include <string_view>

#include "tests/catch2.h"

namespace tlparse {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000, kHourUs = 3600 * kSecondUs, kDayUs = 24 * kHourUs;

std::int64_t Utc(std::int64_t year, int month, int day, int hour = 0, int minute = 0) {
  return DaysFromCivil(year, month, day) * kDayUs + hour * kHourUs + minute * 60 * kSecondUs;
}

PrefixTimeUs Prefix(std::string_view text) {
  const auto time = ParsePrefixTime(text);
  REQUIRE(time);
  return *time;
}

TEST_CASE("DaysFromCivil agrees with the C library from 1890 to 2110", "[glog_time]") {
  std::tm date{};
  std::int64_t expected = DaysFromCivil(1890, 1, 1);
  CHECK(DaysFromCivil(1970, 1, 1) == 0);
  CHECK(DaysFromCivil(2000, 3, 1) == 11017);
  for (; expected < DaysFromCivil(2110, 1, 1); ++expected) {
    const std::time_t seconds = expected * 86400;
    REQUIRE(gmtime_r(&seconds, &date) != nullptr);
    if (DaysFromCivil(date.tm_year + 1900, date.tm_mon + 1, date.tm_mday) != expected) {
      FAIL("day " << expected);
    }
  }
}

TEST_CASE("ParsePrefixTime reads twenty characters and refuses impossible times", "[glog_time]") {
  CHECK(Prefix("0101 00:00:00.000000") == 0);
  CHECK(Prefix("1231 23:59:59.999999") == 366 * kDayUs - 1);
  CHECK(Prefix("0301 00:00:00.000001") == 60 * kDayUs + 1);
  CHECK(Prefix("0229 12:00:60.000000") == 59 * kDayUs + 12 * kHourUs + 60 * kSecondUs);
  for (const char* text : {"", "0101 00:00:00.00000", "0101 00:00:00.0000000",
                           "0001 00:00:00.000000", "1301 00:00:00.000000", "0100 00:00:00.000000",
                           "0132 00:00:00.000000", "0431 00:00:00.000000", "0230 00:00:00.000000",
                           "0101 24:00:00.000000", "0101 00:60:00.000000", "0101 00:00:61.000000",
                           "0101 00:00:00,000000", "0101-00:00:00.000000", "01a1 00:00:00.000000",
                           "0101 00:00:00.00000-", "-101 00:00:00.000000"}) {
    INFO(text);
    CHECK_FALSE(ParsePrefixTime(text));
  }
}

TEST_CASE("UsSinceNewYear counts 29 February only in leap years", "[glog_time]") {
  const PrefixTimeUs march = Prefix("0301 00:00:00.000000");
  CHECK(UsSinceNewYear(march, 2024) == 60 * kDayUs);
  CHECK(UsSinceNewYear(march, 2026) == 59 * kDayUs);
  CHECK(UsSinceNewYear(march, 2100) == 59 * kDayUs);
  CHECK(UsSinceNewYear(Prefix("0229 01:00:00.000000"), 2024) == 59 * kDayUs + kHourUs);
  CHECK(UsSinceNewYear(Prefix("0229 01:00:00.000000"), 2026) == 59 * kDayUs + kHourUs);
  CHECK(UsSinceNewYear(Prefix("0228 01:00:00.000000"), 2026) == 58 * kDayUs + kHourUs);
}

TEST_CASE("Calibrate finds year and offset for every zone and day", "[glog_time]") {
  for (std::int64_t year : {1999, 2000, 2023, 2024, 2026, 2100}) {
    for (std::int64_t offset_s = -14 * 3600; offset_s <= 14 * 3600; offset_s += 900) {
      for (std::int64_t day = 0; day < 366; day += (day < 3 || day > 360 || day == 58) ? 1 : 5) {
        // An event, and its line 2 ms later.
        const std::int64_t event_us = Utc(year, 1, 1, 0, 3) + day * kDayUs;
        const std::int64_t local_us = event_us + 2000 + offset_s * kSecondUs;
        const std::time_t local_s = local_us / kSecondUs;
        std::tm date{};
        gmtime_r(&local_s, &date);
        char text[32];
        std::strftime(text, sizeof(text), "%m%d %H:%M:%S.002000", &date);
        const PrefixTimeUs prefix = Prefix(text);
        const auto calibration = Calibrate(prefix, event_us);
        INFO(text << " offset " << offset_s << " year " << year);
        if (!calibration || calibration->utc_offset_s != offset_s ||
            calibration->anchor_year != date.tm_year + 1900 || calibration->residual_us != 2000 ||
            ToEpochUs(*calibration, prefix) != event_us + 2000) {
          FAIL("wrong calibration");
        }
      }
    }
  }
}

TEST_CASE("Calibrate tolerates minutes between the two times, not hours of nonsense",
          "[glog_time]") {
  const auto late = Calibrate(Prefix("0601 10:06:59.000000"), Utc(2026, 6, 1, 8));
  REQUIRE(late);
  CHECK(late->utc_offset_s == 7200);
  CHECK(late->residual_us == 419 * kSecondUs);
  const auto early = Calibrate(Prefix("0601 09:53:01.000000"), Utc(2026, 6, 1, 8));
  REQUIRE(early);
  CHECK(early->utc_offset_s == 7200);
  CHECK(early->residual_us == -419 * kSecondUs);
  const auto kathmandu = Calibrate(Prefix("0601 13:45:00.000000"), Utc(2026, 6, 1, 8));
  REQUIRE(kathmandu);
  CHECK(kathmandu->utc_offset_s == 5 * 3600 + 45 * 60);
  CHECK_FALSE(Calibrate(Prefix("0603 10:00:00.000000"), Utc(2026, 6, 1, 8)));
  CHECK_FALSE(Calibrate(Prefix("0601 23:00:00.000000"), Utc(2026, 6, 1, 8)));
  CHECK_FALSE(Calibrate(Prefix("0229 23:00:00.000000"), Utc(2026, 2, 28, 23)));
}

TEST_CASE("A calibrated log may cross New Year and a leap day in both directions", "[glog_time]") {
  const auto before = Calibrate(Prefix("1231 23:59:00.000000"), Utc(2023, 12, 31, 22, 59));
  REQUIRE(before);
  CHECK(before->anchor_year == 2023);
  CHECK(before->utc_offset_s == 3600);
  CHECK(ToEpochUs(*before, Prefix("0101 00:30:00.000000")) == Utc(2023, 12, 31, 23, 30));
  CHECK(ToEpochUs(*before, Prefix("0229 12:00:00.000000")) == Utc(2024, 2, 29, 11));
  CHECK(ToEpochUs(*before, Prefix("0301 12:00:00.000000")) == Utc(2024, 3, 1, 11));
  CHECK(ToEpochUs(*before, Prefix("1130 12:00:00.000000")) == Utc(2023, 11, 30, 11));

  // Local time is already in the next year.
  const auto after = Calibrate(Prefix("0101 05:00:00.000000"), Utc(2026, 12, 31, 20));
  REQUIRE(after);
  CHECK(after->anchor_year == 2027);
  CHECK(after->utc_offset_s == 9 * 3600);
  CHECK(ToEpochUs(*after, Prefix("1231 23:00:00.000000")) == Utc(2026, 12, 31, 14));
  CHECK(ToEpochUs(*after, Prefix("0301 09:00:00.000000")) == Utc(2027, 3, 1));

  // And in the previous one.
  const auto west = Calibrate(Prefix("1231 14:00:00.000000"), Utc(2027, 1, 1));
  REQUIRE(west);
  CHECK(west->anchor_year == 2026);
  CHECK(west->utc_offset_s == -10 * 3600);
}

TEST_CASE("A modification time gives the latest year that does not lie after it", "[glog_time]") {
  const auto year_of = [](const char* prefix, std::int64_t mtime_us) {
    return CalibrateByModificationTime(Prefix(prefix), mtime_us).anchor_year;
  };
  CHECK(year_of("0601 10:00:00.000000", Utc(2026, 6, 1, 10)) == 2026);
  CHECK(year_of("0602 09:00:00.000000", Utc(2026, 6, 1, 10)) == 2026);  // a zone ahead
  CHECK(year_of("0603 09:00:00.000000", Utc(2026, 6, 1, 10)) == 2025);
  CHECK(year_of("1231 23:00:00.000000", Utc(2027, 1, 1, 1)) == 2026);
  CHECK(year_of("0101 01:00:00.000000", Utc(2026, 12, 31, 20)) == 2027);
  CHECK(year_of("0229 10:00:00.000000", Utc(2026, 6, 1)) == 2024);
  CHECK(year_of("0229 10:00:00.000000", Utc(2024, 2, 29, 10)) == 2024);
  CHECK(year_of("0229 10:00:00.000000", Utc(2024, 2, 27)) == 2020);
  CHECK(year_of("0301 10:00:00.000000", Utc(2024, 2, 29, 12)) == 2024);
  CHECK(year_of("0301 10:00:00.000000", Utc(2024, 2, 29, 8)) == 2023);
  const Calibration zone =
      CalibrateByModificationTime(Prefix("0101 01:00:00.000000"), Utc(2026, 12, 31, 22), 3 * 3600);
  CHECK(zone.anchor_year == 2027);
  CHECK(ToEpochUs(zone, zone.anchor_us) == Utc(2026, 12, 31, 22));
  // A damaged clock must not stop anything.
  CHECK(year_of("0601 10:00:00.000000", Utc(1900, 1, 1)) == 1899);
  CHECK(year_of("0601 10:00:00.000000", INT64_MAX) == 5138);
  CHECK(year_of("0601 10:00:00.000000", INT64_MIN) == -1200);
  CHECK_FALSE(Calibrate(Prefix("0601 10:00:00.000000"), INT64_MAX));
  CHECK_FALSE(Calibrate(Prefix("0601 10:00:00.000000"), INT64_MIN));
}

}  // namespace
}  // namespace tlparse
