#include "fleet/fleet_jumps.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

namespace tlparse {
namespace {

using Values = std::span<const double>;

double Median(Values values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// Sum of the distances from the median: single outliers weigh little.
double Spread(Values values) {
  const double median = Median(values);
  double sum = 0;
  for (const double value : values) sum += std::abs(value - median);
  return sum;
}

// Standard deviation of the noise, by the differences between neighbours: a jump is one of them.
double Noise(Values values) {
  constexpr std::size_t kFewest = 6;
  constexpr double kOfFew = 0.05, kLeast = 0.01;
  std::vector<double> steps;
  for (std::size_t i = 1; i < values.size(); ++i)
    steps.push_back(std::abs(values[i] - values[i - 1]));
  if (steps.size() < kFewest) return kOfFew;
  constexpr double kDeviationsToMedian = 0.6745;
  return std::max(kLeast, Median(steps) / (kDeviationsToMedian * std::sqrt(2.0)));
}

// One or two runs at an end are no jump if the others reached such values before.
bool IsBeyond(Values few, Values others) {
  const auto [few_least, few_most] = std::minmax_element(few.begin(), few.end());
  const auto [least, most] = std::minmax_element(others.begin(), others.end());
  return *few_least > *most || *few_most < *least;
}

class JumpFinder {
 public:
  explicit JumpFinder(std::vector<double> logs) : logs_(std::move(logs)), noise_(Noise(logs_)) {}

  std::vector<Jump> Run() {
    std::vector<std::pair<std::size_t, std::size_t>> pieces{{0, logs_.size()}};
    while (!pieces.empty()) {
      const auto [begin, end] = pieces.back();
      pieces.pop_back();
      std::optional<Jump> best;
      double best_gain = 0;
      for (std::size_t at = begin + 1; at < end; ++at) {
        const std::optional<double> gain = GainOf(begin, at, end);
        if (gain && (!best || *gain > best_gain)) best = Jump{.at = at}, best_gain = *gain;
      }
      if (!best) continue;
      SetRange(begin, end, best_gain, *best);
      jumps_.push_back(*best);
      pieces.emplace_back(begin, best->at);
      pieces.emplace_back(best->at, end);
    }
    std::sort(jumps_.begin(), jumps_.end(),
              [](const Jump& a, const Jump& b) { return a.at < b.at; });
    return std::move(jumps_);
  }

 private:
  Values Part(std::size_t begin, std::size_t end) const {
    return Values(logs_).subspan(begin, end - begin);
  }
  static std::size_t Before(std::size_t begin, std::size_t at) {
    return at - begin > kJumpWindow ? at - kJumpWindow : begin;
  }

  // How much less the values spread when they are split at `at`; nullopt: no jump is there.
  std::optional<double> GainOf(std::size_t begin, std::size_t at, std::size_t end) const {
    constexpr double kLeastRatio = 1.1, kTimesNoise = 5;
    constexpr std::size_t kNear = 3;
    constexpr double kLeastNear = 0.6;
    const Values left = Part(Before(begin, at), at);
    const Values right = Part(at, std::min(end, at + kJumpWindow));
    const double change = std::abs(Median(right) - Median(left));
    const double uncertainty =
        std::sqrt(1.0 / static_cast<double>(left.size()) + 1.0 / static_cast<double>(right.size()));
    if (change < std::max(std::log(kLeastRatio), kTimesNoise * noise_ * uncertainty))
      return std::nullopt;
    // A drift changes little from one run to the next.
    if (left.size() >= kNear && right.size() >= kNear &&
        std::abs(Median(right.first(kNear)) - Median(left.last(kNear))) < kLeastNear * change)
      return std::nullopt;
    if (right.size() < kNear && !IsBeyond(right, Part(begin, at))) return std::nullopt;
    if (left.size() < kNear && !IsBeyond(left, Part(at, end))) return std::nullopt;
    const std::size_t from = Before(begin, at), to = at + right.size();
    return Gain(from, at, to);
  }

  double Gain(std::size_t from, std::size_t at, std::size_t to) const {
    return Spread(Part(from, to)) - Spread(Part(from, at)) - Spread(Part(at, to));
  }

  void SetRange(std::size_t begin, std::size_t end, double gain, Jump& jump) const {
    constexpr double kTimesNoise = 2;
    const std::size_t from = Before(begin, jump.at), to = std::min(end, jump.at + kJumpWindow);
    jump.first = jump.last = jump.at;
    jump.begin = begin;
    jump.end = end;
    const auto may_be = [&](std::size_t at) {
      return Gain(from, at, to) >= gain - kTimesNoise * noise_;
    };
    while (jump.first - 1 > from && may_be(jump.first - 1)) --jump.first;
    while (jump.last + 1 < to && may_be(jump.last + 1)) ++jump.last;
    jump.before = std::exp(Median(Part(from, jump.at)));
    jump.after = std::exp(Median(Part(jump.at, to)));
  }

  std::vector<double> logs_;
  double noise_;
  std::vector<Jump> jumps_;
};

}  // namespace

std::vector<Jump> FindJumps(const std::vector<double>& times) {
  std::vector<double> logs;
  for (const double time : times) logs.push_back(std::log(time));
  return JumpFinder(std::move(logs)).Run();
}

}  // namespace tlparse
