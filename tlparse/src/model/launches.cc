#include "model/launches.h"

#include <algorithm>
#include <map>

namespace tlparse {
namespace {

struct Interval {
  std::int64_t start_us = 0, end_us = 0;
  std::vector<std::size_t> lives;  // indexes; more than one where logs of a rank overlap
};

// A rank's lives in order of time, those that overlap taken together.
std::vector<Interval> Merge(const std::vector<LogLife>& lives, std::vector<std::size_t> of_rank) {
  std::stable_sort(of_rank.begin(), of_rank.end(), [&](std::size_t a, std::size_t b) {
    return *lives[a].start_us < *lives[b].start_us;
  });
  std::vector<Interval> merged;
  for (const std::size_t index : of_rank) {
    const std::int64_t start_us = *lives[index].start_us;
    const std::int64_t end_us = std::max(start_us, lives[index].end_us.value_or(start_us));
    if (merged.empty() || start_us > merged.back().end_us) {
      merged.push_back({start_us, end_us, {index}});
    } else {
      merged.back().end_us = std::max(merged.back().end_us, end_us);
      merged.back().lives.push_back(index);
    }
  }
  return merged;
}

// When the second and each later launch began, by the ranks that took part in all of them: in the
// middle of the pause before it, or where clocks leave no pause, where its first log begins.
std::vector<std::int64_t> FindBoundaries(const std::vector<std::vector<Interval>>& ranks,
                                         std::size_t launch_count) {
  std::vector<std::int64_t> starts(launch_count, INT64_MAX), ends(launch_count, INT64_MIN);
  for (const std::vector<Interval>& intervals : ranks) {
    if (intervals.size() != launch_count) continue;
    for (std::size_t i = 0; i < launch_count; ++i) {
      starts[i] = std::min(starts[i], intervals[i].start_us);
      ends[i] = std::max(ends[i], intervals[i].end_us);
    }
  }
  std::vector<std::int64_t> boundaries;
  for (std::size_t i = 1; i < launch_count; ++i) {
    boundaries.push_back(ends[i - 1] < starts[i] ? ends[i - 1] + (starts[i] - ends[i - 1]) / 2
                                                 : starts[i]);
  }
  return boundaries;
}

std::int64_t LaunchAt(const std::vector<std::int64_t>& boundaries, std::int64_t time_us) {
  return 1 + (std::upper_bound(boundaries.begin(), boundaries.end(), time_us) - boundaries.begin());
}

}  // namespace

std::vector<std::int64_t> AssignLaunches(const std::vector<LogLife>& lives) {
  std::vector<std::int64_t> launches(lives.size(), 1);
  std::map<std::int64_t, std::vector<std::size_t>> by_rank;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    if (lives[i].rank && lives[i].start_us) by_rank[*lives[i].rank].push_back(i);
  }
  std::vector<std::vector<Interval>> ranks;
  std::size_t launch_count = 1;
  for (auto& [rank, indexes] : by_rank) {
    ranks.push_back(Merge(lives, std::move(indexes)));
    launch_count = std::max(launch_count, ranks.back().size());
  }
  const std::vector<std::int64_t> boundaries = FindBoundaries(ranks, launch_count);
  for (const std::vector<Interval>& intervals : ranks) {
    const auto count = static_cast<std::int64_t>(intervals.size());
    std::int64_t earlier = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const Interval& interval = intervals[static_cast<std::size_t>(i)];
      // Each in a launch of its own, with room for the rank's later ones.
      const std::int64_t last = static_cast<std::int64_t>(launch_count) - (count - 1 - i);
      earlier = std::clamp(LaunchAt(boundaries, interval.start_us), earlier + 1, last);
      for (const std::size_t life : interval.lives) launches[life] = earlier;
    }
  }
  for (std::size_t i = 0; i < lives.size(); ++i) {
    if (!lives[i].rank && lives[i].start_us) launches[i] = LaunchAt(boundaries, *lives[i].start_us);
  }
  return launches;
}

}  // namespace tlparse
