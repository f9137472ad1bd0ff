#include "fleet/fleet_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "base/human_duration.h"
#include "base/printable.h"
#include "fleet/sql_quote.h"
#include "report/tree/html.h"

namespace tlparse {
namespace {

constexpr double kDayS = 86400;
constexpr double kWidth = 1000, kHeight = 190, kLeft = 70, kRight = 55, kTop = 12, kBottom = 32;
constexpr double kPlotWidth = kWidth - kLeft - kRight;

struct Range {
  double from = 0, to = 0;
  double X(double time) const { return kLeft + (time - from) / (to - from) * kPlotWidth; }
};

Range RangeOf(const std::vector<ChartDot>& dots) {
  constexpr double kLeastS = 3600, kMargin = 0.03;
  double from = dots.front().time_s, to = from;
  for (const ChartDot& dot : dots) {
    from = std::min(from, dot.time_s);
    to = std::max(to, dot.time_s);
  }
  const double margin = std::max(kLeastS, to - from) * kMargin;
  const double missing = std::max(0.0, kLeastS - (to - from)) / 2;
  return {from - margin - missing, to + margin + missing};
}

struct Tick {
  double time_s = 0;
  std::string text;
};

std::string MinuteText(double time_s) {
  const auto minutes = static_cast<std::int64_t>(std::floor(time_s / 60));
  return fmt::format("{} {:02}:{:02}", DayText(minutes / 1440), minutes / 60 % 24, minutes % 60);
}

constexpr std::size_t kMostTicks = 8;

// Ticks at multiples of some minutes to weeks; none if they are too many.
std::vector<Tick> TicksOfSeconds(const Range& range) {
  constexpr double kSteps[] = {900,   3600,      3 * 3600,  6 * 3600,  12 * 3600,
                               kDayS, 2 * kDayS, 7 * kDayS, 14 * kDayS};
  for (const double step : kSteps) {
    const double offset = step >= 7 * kDayS ? 4 * kDayS : 0;  // weeks begin on Mondays
    std::vector<Tick> ticks;
    for (double time = std::ceil((range.from - offset) / step) * step + offset;
         time <= range.to && ticks.size() <= kMostTicks; time += step)
      ticks.push_back({time, step < kDayS ? MinuteText(time)
                                          : DayText(static_cast<std::int64_t>(time / kDayS))});
    if (ticks.size() <= kMostTicks) return ticks;
  }
  return {};
}

std::vector<Tick> TicksOfMonths(const Range& range) {
  const auto day = std::chrono::sys_days{
      std::chrono::days{static_cast<std::int64_t>(std::floor(range.from / kDayS))}};
  const std::chrono::year_month_day date{day};
  const std::int64_t first =
      std::int64_t{static_cast<int>(date.year())} * 12 + static_cast<unsigned>(date.month()) - 1;
  for (std::int64_t step = 1;; step = step == 1 ? 3 : step == 3 ? 12 : step * 2) {
    std::vector<Tick> ticks;
    for (std::int64_t month = (first + step - 1) / step * step; ticks.size() <= kMostTicks;
         month += step) {
      const std::chrono::year_month_day begin{
          std::chrono::year{static_cast<int>(month / 12)},
          std::chrono::month{static_cast<unsigned>(month % 12 + 1)}, std::chrono::day{1}};
      const double time =
          static_cast<double>(std::chrono::sys_days{begin}.time_since_epoch().count()) * kDayS;
      if (time > range.to) break;
      if (time >= range.from)
        ticks.push_back({time, fmt::format("{:04}-{:02}", month / 12, month % 12 + 1)});
    }
    if (ticks.size() <= kMostTicks) return ticks;
  }
}

std::vector<Tick> TicksOf(const Range& range, const std::vector<ChartDot>& dots) {
  const bool is_one_time = std::all_of(dots.begin(), dots.end(), [&](const ChartDot& dot) {
    return dot.time_s == dots.front().time_s;
  });
  if (is_one_time)
    return {{dots.front().time_s, DayText(static_cast<std::int64_t>(dots.front().time_s / kDayS))}};
  std::vector<Tick> ticks = TicksOfSeconds(range);
  return ticks.empty() ? TicksOfMonths(range) : ticks;
}

std::string ValueText(double value, ChartUnit unit) {
  switch (unit) {
    case ChartUnit::kSeconds:
      return value == 0 ? "0 s" : HumanDuration(value);
    case ChartUnit::kShare:
      return fmt::format("{:.4g} %", value * 100);
    case ChartUnit::kCount:
      return fmt::format("{:.0f}", value);
  }
  return {};
}

// The next of 1, 2, 4, 10, 20, … (of counts from 2 on, so that half of it is a count).
double RoundTop(double most, ChartUnit unit) {
  if (unit == ChartUnit::kShare) return 1;
  if (unit == ChartUnit::kCount) most = std::max(most, 2.0);
  if (!(most > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(most)));
  for (const double factor : {1.0, 2.0, 4.0, 6.0, 8.0})
    if (most <= factor * power * (1 + 1e-9)) return factor * power;
  return 10 * power;
}

}  // namespace

std::vector<double> PlacesInTime(const std::vector<RunDay>& runs) {
  std::vector<double> places;
  for (std::size_t begin = 0, end = 0; begin < runs.size(); begin = end) {
    while (end < runs.size() && runs[end].day == runs[begin].day) ++end;
    const std::int64_t day = std::max<std::int64_t>(0, ParseDay(runs[begin].day));
    const auto is_known = [&](const RunDay& run) {
      return run.start_us > 0 && run.start_us / 86'400'000'000 == day;
    };
    const auto unknown =
        std::count_if(runs.begin() + static_cast<std::ptrdiff_t>(begin),
                      runs.begin() + static_cast<std::ptrdiff_t>(end), std::not_fn(is_known));
    double number = 0.5;
    for (std::size_t i = begin; i < end; ++i)
      places.push_back(is_known(runs[i])
                           ? static_cast<double>(runs[i].start_us) / 1e6
                           : (static_cast<double>(day) + number++ / static_cast<double>(unknown)) *
                                 kDayS);
  }
  return places;
}

std::string Chart(std::string_view heading, const std::vector<ChartDot>& dots, ChartUnit unit) {
  if (dots.empty()) return {};
  double most = 0;
  for (const ChartDot& dot : dots) most = std::max(most, dot.value);
  const double top = RoundTop(most, unit);
  constexpr double kPlotBottom = kHeight - kBottom;
  const auto y = [&](double value) { return kPlotBottom - value / top * (kPlotBottom - kTop); };
  std::string svg =
      fmt::format("<h2>{0}</h2>\n<svg viewBox=\"0 0 {1} {2}\" role=\"group\" aria-label=\"{0}\">",
                  Html(heading), kWidth, kHeight);
  for (const double value : {0.0, top / 2, top})
    svg += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5}</text>\n",
        kLeft, kWidth - kRight, y(value), kLeft - 6, y(value) + 4, Html(ValueText(value, unit)));
  const Range range = RangeOf(dots);
  for (const Tick& tick : TicksOf(range, dots))
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4}</text>\n",
        range.X(tick.time_s), kPlotBottom, kPlotBottom + 5, kPlotBottom + 20, Html(tick.text));
  for (const ChartDot& dot : dots) {
    const std::string text =
        Html(Printable(fmt::format("{}: {}", dot.label, ValueText(dot.value, unit))));
    svg += fmt::format(
        "<a href=\"/run/{0}\" aria-label=\"{1}\"><circle{2} cx=\"{3:.1f}\" cy=\"{4:.1f}\" "
        "r=\"5\"><title>{1}</title></circle></a>\n",
        Html(dot.run_id), text, dot.is_marked ? " class=\"odd\"" : "", range.X(dot.time_s),
        y(dot.value));
  }
  return svg + "</svg>\n";
}

}  // namespace tlparse
