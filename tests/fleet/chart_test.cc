// Where a run's dot stands, and what is written below and at it.
#include <fmt/format.h>

#include <regex>

#include "fleet/fleet_chart.h"
#include "fleet/sql_quote.h"
#include "tests/catch2.h"

namespace tlparse {
namespace {

constexpr double kDayS = 86400;

std::vector<std::string> All(const std::string& text, const char* pattern) {
  std::vector<std::string> found;
  const std::regex expression(pattern);
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end; ++match)
    found.push_back((*match)[1]);
  return found;
}

std::vector<std::string> TickTexts(const std::string& svg) {
  return All(svg, "text-anchor=\"middle\">([^<]*)<");
}

ChartDot Dot(double time_s, double value = 1) {
  return {"61f0c404-5cb3-11e7-907b-a6006ad3dba0", "label", time_s, value};
}

}  // namespace

TEST_CASE("chart: a run stands at its start; without one that suits its day, within its day") {
  const std::int64_t noon_us = ParseDay("2026-09-02") * 86'400'000'000 + 43'200'000'000;
  const std::vector<double> places = PlacesInTime({{"2026-09-01", 0},
                                                   {"2026-09-02", noon_us - 1'000'000},
                                                   {"2026-09-02", noon_us},
                                                   {"2026-09-05", noon_us},
                                                   {"2026-09-05", 0}});
  const double first = static_cast<double>(ParseDay("2026-09-01")) * kDayS;
  CHECK(places == std::vector<double>{first + kDayS / 2, first + 1.5 * kDayS - 1,
                                      first + 1.5 * kDayS, first + 4.25 * kDayS,
                                      first + 4.75 * kDayS});
  CHECK(PlacesInTime({}).empty());
}

TEST_CASE("chart: distances are those of the times") {
  const std::string svg = Chart("x", {Dot(0), Dot(kDayS), Dot(10 * kDayS)}, ChartUnit::kSeconds);
  const std::vector<std::string> x = All(svg, "cx=\"([0-9.]+)\"");
  REQUIRE(x.size() == 3);
  const double one = std::stod(x[1]) - std::stod(x[0]), nine = std::stod(x[2]) - std::stod(x[1]);
  CHECK(std::abs(nine - 9 * one) < 2);
}

TEST_CASE("chart: one to eight dates, whatever the range") {
  for (const double range_s : {1.0, 3600.0, 5 * 3600.0, kDayS, 6 * kDayS, 90 * kDayS, 200 * kDayS,
                               900 * kDayS, 9000 * kDayS}) {
    const double begin = static_cast<double>(ParseDay("2026-01-07")) * kDayS + 40000;
    const std::vector<std::string> ticks =
        TickTexts(Chart("x", {Dot(begin), Dot(begin + range_s)}, ChartUnit::kCount));
    INFO(range_s);
    CHECK(!ticks.empty());
    CHECK(ticks.size() <= 8);
  }
  const double day = static_cast<double>(ParseDay("2026-06-01")) * kDayS;
  CHECK(TickTexts(Chart("x", {Dot(day)}, ChartUnit::kShare)) ==
        std::vector<std::string>{"2026-06-01"});
  CHECK(TickTexts(Chart("x", {Dot(day), Dot(day + 60 * kDayS)}, ChartUnit::kShare)) ==
        std::vector<std::string>{"2026-06-08", "2026-06-22", "2026-07-06", "2026-07-20"});
  CHECK(Chart("x", {}, ChartUnit::kShare).empty());
}

TEST_CASE("chart: hostile names are text") {
  ChartDot dot = Dot(1e9, 2.5);
  dot.label = "<script>\"'&\n\u202e";
  const std::string svg = Chart("<b>", {dot}, ChartUnit::kSeconds);
  CHECK(svg.find("<script") == std::string::npos);
  CHECK(svg.find("<b>") == std::string::npos);
  CHECK(svg.find("\u202e") == std::string::npos);
  CHECK(svg.find("&lt;script&gt;") != std::string::npos);
  CHECK(svg.find(": 2.50 s</title>") != std::string::npos);
}

}  // namespace tlparse
