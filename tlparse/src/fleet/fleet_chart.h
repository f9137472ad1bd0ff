// Charts of the fleet's pages, as SVG: one dot per run, at its time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tlparse {

// When a run was: its day, and the time at which its logs start.
struct RunDay {
  std::string day;
  std::int64_t start_us = 0;  // since 1970; 0: not known
};
// Seconds since 1970 for each run. Runs are in order. Runs whose start is not known or on another
// day (--day of a push) are spread over their day.
std::vector<double> PlacesInTime(const std::vector<RunDay>& runs);

struct ChartDot {
  std::string run_id;
  std::string label;  // what is shown at the dot, before its value
  double time_s = 0;  // since 1970
  double value = 0;
  bool is_marked = false;
};
enum class ChartUnit { kSeconds, kCount, kShare };

// A chart of values from 0, with a link to "/run/UUID" at each dot. Empty if there are no dots.
std::string Chart(std::string_view heading, const std::vector<ChartDot>& dots, ChartUnit unit);

}  // namespace tlparse
