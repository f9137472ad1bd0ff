#include "fleet/fleet_jumps.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "base/median.h"

namespace tlparse {
namespace {

using Values = std::span<const double>;

// Runs on either side that are compared: a change that does not stand out among few may among more.
constexpr std::size_t kWindows[] = {7, 14, 28};
constexpr std::size_t kLongest = 28;
constexpr std::size_t kShortSide = 7;  // a side with fewer runs must be unlike the other one
constexpr double kTimesNoise = 5;
constexpr double kLeastAgainstLine = 6;

// Sum of the distances from the median: single outliers weigh little.
double Spread(Values values) {
  const double median = Median(values);
  double sum = 0;
  for (const double value : values) sum += std::abs(value - median);
  return sum;
}

// Standard deviation of the noise, by the differences between neighbours: a jump is one of them.
double NoiseOfSteps(Values values) {
  constexpr double kLeast = 0.01, kDeviationsToMedian = 0.6745;
  std::vector<double> steps;
  for (std::size_t i = 1; i < values.size(); ++i)
    steps.push_back(std::abs(values[i] - values[i - 1]));
  if (steps.size() < 6) return kLeast;
  return std::max(kLeast, Median(steps) / (kDeviationsToMedian * std::sqrt(2.0)));
}

// Sums of the squared distances from the median of a side.
struct Deviations {
  double squares = 0;      // without the largest one of many: an outlier is no noise
  std::size_t count = 0;   // of those
  double all_squares = 0;  // with it
  double neighbours = 0;   // of products of neighbours: noise that lasts for several runs
  void Add(Values side) {
    constexpr std::size_t kMany = 10;
    const double median = Median(side);
    double largest = 0, sum = 0;
    for (std::size_t i = 0; i < side.size(); ++i) {
      const double distance = side[i] - median;
      sum += distance * distance;
      largest = std::max(largest, distance * distance);
      if (i > 0) neighbours += distance * (side[i - 1] - median);
    }
    all_squares += sum;
    squares += side.size() >= kMany ? sum - largest : sum;
    count += side.size() >= kMany ? side.size() - 1 : side.size();
  }
};

// The least distance of `few` from `others` where each of `few` is above, or each below, all others;
// else negative.
double DistanceBeyond(Values few, Values others) {
  const auto [few_least, few_most] = std::minmax_element(few.begin(), few.end());
  const auto [least, most] = std::minmax_element(others.begin(), others.end());
  return std::max(*few_least - *most, *least - *few_most);
}

// Logarithm of how much likelier two constant levels are than one straight line.
double StepAgainstLine(Values left, Values right) {
  std::vector<double> all(left.begin(), left.end());
  all.insert(all.end(), right.begin(), right.end());
  const auto mean = [](Values values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  const double count = static_cast<double>(all.size()), middle = (count - 1) / 2;
  const double left_mean = mean(left), right_mean = mean(right), whole_mean = mean(all);
  double slope = 0, squares = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double x = static_cast<double>(i) - middle;
    slope += x * (all[i] - whole_mean);
    squares += x * x;
  }
  slope /= squares;
  double step = 1e-12, line = 1e-12;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double level = i < left.size() ? left_mean : right_mean;
    const double on_line = whole_mean + slope * (static_cast<double>(i) - middle);
    step += (all[i] - level) * (all[i] - level);
    line += (all[i] - on_line) * (all[i] - on_line);
  }
  return count / 2 * std::log(line / step);
}

// The values, those far from the median moved towards it.
std::vector<double> Clipped(Values side, double noise) {
  constexpr double kTimes = 2.5, kDeviationsToMedian = 0.6745;
  const double median = Median(side);
  std::vector<double> distances;
  for (const double value : side) distances.push_back(std::abs(value - median));
  const double most = kTimes * std::max(noise, Median(distances) / kDeviationsToMedian);
  std::vector<double> clipped;
  for (const double value : side)
    clipped.push_back(std::clamp(value, median - most, median + most));
  return clipped;
}

// The test of Mann and Whitney: how many standard deviations the ranks of the sides differ, whatever
// the distribution of the values.
double RankDifference(Values left, Values right) {
  std::vector<std::pair<double, bool>> all;
  for (const double value : left) all.emplace_back(value, true);
  for (const double value : right) all.emplace_back(value, false);
  std::sort(all.begin(), all.end());
  const double count = static_cast<double>(all.size());
  double sum = 0, squares = 0;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].first == all[begin].first) ++end;
    const double rank = static_cast<double>(begin + end - 1) / 2 - (count - 1) / 2;
    for (std::size_t i = begin; i < end; ++i) {
      sum += all[i].second ? rank : 0;
      squares += rank * rank;
    }
  }
  if (squares == 0) return 0;
  const double of_left = static_cast<double>(left.size());
  return std::abs(sum) / std::sqrt(of_left * (count - of_left) / (count * (count - 1)) * squares);
}

class JumpFinder {
 public:
  explicit JumpFinder(std::vector<double> logs)
      : logs_(std::move(logs)), noise_of_steps_(NoiseOfSteps(logs_)) {}

  std::vector<Jump> Run() {
    std::vector<std::pair<std::size_t, std::size_t>> pieces{{0, logs_.size()}};
    while (!pieces.empty()) {
      const auto [begin, end] = pieces.back();
      pieces.pop_back();
      std::optional<Found> best;
      for (std::size_t at = begin + 1; at < end; ++at) {
        const std::optional<Found> found = Try(begin, at, end);
        if (found && (!best || found->gain > best->gain)) best = found;
      }
      if (!best) continue;
      jumps_.push_back(Describe(begin, end, *best));
      pieces.emplace_back(begin, best->at);
      pieces.emplace_back(best->at, end);
    }
    std::sort(jumps_.begin(), jumps_.end(),
              [](const Jump& a, const Jump& b) { return a.at < b.at; });
    return std::move(jumps_);
  }

 private:
  struct Found {
    std::size_t at = 0;
    std::size_t window = 0;
    double gain = 0;   // how much less the values spread when they are split here
    double noise = 0;  // standard deviation of a run
  };

  Values Part(std::size_t begin, std::size_t end) const {
    return Values(logs_).subspan(begin, end - begin);
  }
  Values Left(std::size_t begin, std::size_t at, std::size_t window) const {
    return Part(at - begin > window ? at - window : begin, at);
  }
  Values Right(std::size_t at, std::size_t end, std::size_t window) const {
    return Part(at, std::min(end, at + window));
  }

  struct Noise {
    double deviation = 0;  // standard, of a run
    double threshold = 0;  // least change of a median, for one run on each side, that stands out
    double lasting = 1;    // factor of the uncertainty where a run is like the one before
  };
  Noise NoiseOf(Values left, Values right) const {
    constexpr double kOfFew = 0.15, kMostCorrelation = 0.7;
    constexpr std::size_t kFewRuns = 7, kEnoughToCorrelate = 24;
    // Student's t for a chance of 0.0005, by the degrees of freedom.
    constexpr double kStudent[] = {0, 1273, 31.6, 12.92, 8.61, 6.87, 5.96, 5.41, 5.04};
    Deviations deviations;
    deviations.Add(left);
    deviations.Add(right);
    if (deviations.count < 3) return {kOfFew, kTimesNoise * kOfFew, 1};
    const std::size_t freedom = deviations.count - 2;
    Noise noise;
    noise.deviation =
        std::max(noise_of_steps_, std::sqrt(deviations.squares / static_cast<double>(freedom)));
    if (left.size() + right.size() >= kEnoughToCorrelate && deviations.all_squares > 0) {
      const double correlation =
          std::clamp(deviations.neighbours / deviations.all_squares, 0.0, kMostCorrelation);
      noise.lasting = std::sqrt((1 + correlation) / (1 - correlation));
    }
    const double student = freedom < std::size(kStudent) ? kStudent[freedom] : 0;
    noise.threshold = std::max(kTimesNoise, student) * noise.deviation * noise.lasting;
    if (logs_.size() < kFewRuns) noise.threshold = std::min(noise.threshold, kTimesNoise * kOfFew);
    return noise;
  }

  // Whether the medians of these windows differ enough, and near the split as well: a drift changes
  // little from one run to the next.
  static bool StandsOut(Values left, Values right, std::size_t window, double threshold) {
    constexpr double kLeastRatio = 1.1, kLeastNear = 0.6;
    constexpr std::size_t kFewest = 3;
    const std::size_t near = window == kWindows[0] ? 3 : 5;
    const double change = Median(right) - Median(left);
    const double uncertainty =
        std::sqrt(1.0 / static_cast<double>(left.size()) + 1.0 / static_cast<double>(right.size()));
    if (std::abs(change) < std::max(std::log(kLeastRatio), threshold * uncertainty)) return false;
    if (left.size() < kFewest || right.size() < kFewest) return true;
    const double near_change = Median(right.first(std::min(near, right.size()))) -
                               Median(left.last(std::min(near, left.size())));
    return near_change / change >= kLeastNear;
  }

  // A side of few runs: none of the others was like them.
  bool IsUnlike(std::size_t begin, std::size_t at, std::size_t end) const {
    constexpr std::size_t kFewest = 3;
    const Values left = Part(begin, at), right = Part(at, end);
    const bool is_right = right.size() < left.size();
    const Values few = is_right ? right : left, others = is_right ? left : right;
    const double distance = DistanceBeyond(few, others);
    if (distance < 0) return false;
    if (few.size() >= kFewest) return true;
    const Values near = is_right ? Left(begin, at, kWindows[0]) : Right(at, end, kWindows[0]);
    return distance >= std::abs(Median(few) - Median(near)) / 2;
  }

  // The window in which the medians differ by more than the noise of all runs allows; 0: none.
  std::size_t WindowBeyondNoise(std::size_t begin, std::size_t at, std::size_t end,
                                const Noise& noise) const {
    const std::size_t shorter = std::min(at - begin, end - at);
    for (const std::size_t window : kWindows) {
      if (window > kWindows[0] && shorter <= window / 2) return 0;
      if (!StandsOut(Left(begin, at, window), Right(at, end, window), window, noise.threshold))
        continue;
      const bool is_jump = shorter < kShortSide
                               ? IsUnlike(begin, at, end)
                               : StepAgainstLine(Left(begin, at, kLongest),
                                                 Right(at, end, kLongest)) >= kLeastAgainstLine;
      return is_jump ? window : 0;
    }
    return 0;
  }

  // Whether most runs changed, where some are so far from the others that they hide it: the medians
  // of all windows differ, and so do the ranks of the runs.
  bool IsChangeOfMost(std::size_t begin, std::size_t at, std::size_t end,
                      const Noise& noise) const {
    constexpr double kLeastRankDifference = 4, kLeastOfChange = 0.7;
    constexpr std::size_t kEnough = 14;
    if (std::min(at - begin, end - at) < kEnough) return false;
    const Values left = Left(begin, at, kLongest), right = Right(at, end, kLongest);
    if (RankDifference(left, right) < kLeastRankDifference * noise.lasting) return false;
    const Values near_left = Left(begin, at, kWindows[0]), near_right = Right(at, end, kWindows[0]);
    if (!StandsOut(near_left, near_right, kWindows[0],
                   kTimesNoise * noise_of_steps_ * noise.lasting))
      return false;
    const double change = Median(near_right) - Median(near_left);
    for (const std::size_t window : kWindows)
      if ((Median(Right(at, end, window)) - Median(Left(begin, at, window))) / change <
          kLeastOfChange)
        return false;
    return StepAgainstLine(Clipped(left, noise_of_steps_), Clipped(right, noise_of_steps_)) >=
           kLeastAgainstLine;
  }

  std::optional<Found> Try(std::size_t begin, std::size_t at, std::size_t end) const {
    const Noise noise = NoiseOf(Left(begin, at, kLongest), Right(at, end, kLongest));
    Found found{at, WindowBeyondNoise(begin, at, end, noise), 0, noise.deviation};
    if (found.window == 0) {
      if (!IsChangeOfMost(begin, at, end, noise)) return std::nullopt;
      found.window = kWindows[0];
      found.noise = noise_of_steps_;
    }
    found.gain = Gain(begin, at, end, kLongest);
    return found;
  }

  double Gain(std::size_t begin, std::size_t at, std::size_t end, std::size_t window) const {
    const std::size_t from = at - Left(begin, at, window).size();
    return GainWithin(from, at, at + Right(at, end, window).size());
  }
  double GainWithin(std::size_t from, std::size_t at, std::size_t to) const {
    return Spread(Part(from, to)) - Spread(Part(from, at)) - Spread(Part(at, to));
  }

  Jump Describe(std::size_t begin, std::size_t end, const Found& found) const {
    constexpr double kTimesNoiseOfRange = 2;
    const Values left = Left(begin, found.at, found.window);
    const Values right = Right(found.at, end, found.window);
    const std::size_t from = found.at - left.size(), to = found.at + right.size();
    Jump jump{.at = found.at, .first = found.at, .last = found.at};
    jump.before = std::exp(Median(left));
    jump.after = std::exp(Median(right));
    jump.runs_before = left.size();
    jump.runs_after = right.size();
    const double gain = GainWithin(from, found.at, to);
    const auto may_be = [&](std::size_t at) {
      return GainWithin(from, at, to) >= gain - kTimesNoiseOfRange * found.noise;
    };
    while (jump.first - 1 > from && may_be(jump.first - 1)) --jump.first;
    while (jump.last + 1 < to && may_be(jump.last + 1)) ++jump.last;
    return jump;
  }

  std::vector<double> logs_;
  double noise_of_steps_;
  std::vector<Jump> jumps_;
};

}  // namespace

std::vector<Jump> FindJumps(const std::vector<double>& times) {
  std::vector<double> logs;
  for (const double time : times) logs.push_back(std::log(time));
  return JumpFinder(std::move(logs)).Run();
}

}  // namespace tlparse
