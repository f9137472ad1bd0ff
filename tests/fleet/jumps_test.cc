// Jumps in a series of times, among noise.
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>

#include "fleet/fleet_jumps.h"
#include "tests/catch2.h"

namespace tlparse {
namespace {

constexpr std::size_t kRuns = 90;

// The same numbers with each library.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  double Uniform() { return static_cast<double>(engine_()) / 4294967296.0; }
  double Normal() {  // nearly
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += Uniform();
    return sum - 6;
  }

 private:
  std::mt19937 engine_;
};

// A history with normal noise of this standard deviation; `factor` of each run.
std::vector<double> History(double noise, const std::function<double(std::size_t)>& factor,
                            std::size_t runs = kRuns, unsigned seed = 7) {
  Random random(seed);
  std::vector<double> times;
  for (std::size_t i = 0; i < runs; ++i)
    times.push_back(2e6 * factor(i) * std::exp(noise * random.Normal()));
  return times;
}

std::vector<std::size_t> Places(const std::vector<double>& times) {
  std::vector<std::size_t> places;
  for (const Jump& jump : FindJumps(times)) places.push_back(jump.at);
  return places;
}

using Expected = std::vector<std::size_t>;

}  // namespace

TEST_CASE("jumps: each is found at its run, up or down") {
  CHECK(Places(History(0.03, [](std::size_t i) { return i < 41 ? 1 : 1.25; })) == Expected{41});
  CHECK(Places(History(0.03, [](std::size_t i) { return i < 20 ? 1 : 0.6; })) == Expected{20});
  CHECK(Places(History(0.03, [](std::size_t i) {
          return (i < 30 ? 1 : 1.3) * (i < 60 ? 1 : 1.3);
        })) == Expected{30, 60});
  CHECK(Places(History(0.03, [](std::size_t i) { return i < 30 || i >= 60 ? 1 : 2; })) ==
        Expected{30, 60});
  const std::vector<Jump> jumps =
      FindJumps(History(0.0, [](std::size_t i) { return i < 41 ? 1 : 1.5; }));
  REQUIRE(jumps.size() == 1);
  CHECK(jumps[0].first == 41);
  CHECK(jumps[0].last == 41);
  CHECK(std::abs(jumps[0].before - 2e6) < 1);
  CHECK(std::abs(jumps[0].after - 3e6) < 1);
}

TEST_CASE("jumps: single slow days are none") {
  CHECK(Places(History(0.03, [](std::size_t i) { return i == 50 ? 3 : 1; })).empty());
  CHECK(Places(History(
                   0.03, [](std::size_t i) { return i % 7 == 5 ? 1.5 : 1; }, 91))
            .empty());
}

TEST_CASE("jumps: the last run may be the first of many") {
  CHECK(Places(History(0.03, [](std::size_t i) { return i < kRuns - 1 ? 1 : 1.6; })) ==
        Expected{kRuns - 1});
}

TEST_CASE("jumps: a slow drift is none") {
  CHECK(Places(History(0.02, [](std::size_t i) {
          return 1 + static_cast<double>(i) / 180;
        })).empty());
}

TEST_CASE("jumps: among much noise the range has the run") {
  int found = 0, in_range = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    for (const Jump& jump : FindJumps(History(
             0.1, [](std::size_t i) { return i < 45 ? 1 : 1.5; }, kRuns, seed))) {
      ++found;
      in_range += jump.first <= 45 && 45 <= jump.last ? 1 : 0;
    }
  }
  CHECK(found >= 90);
  CHECK(in_range >= found * 9 / 10);
}

TEST_CASE("jumps: few runs") {
  CHECK(FindJumps({}).empty());
  CHECK(FindJumps({1e6}).empty());
  CHECK(Places({1e6, 1.05e6}).empty());
  CHECK(Places({1e6, 3e6}) == Expected{1});
  CHECK(Places({1e6, 1.01e6, 0.99e6, 1.41e6, 1.40e6, 1.39e6}) == Expected{3});
  CHECK(Places({1e6, 1.2e6, 0.9e6, 1.41e6, 1.1e6, 1.3e6}).empty());
}

namespace {

// Histories without a jump: runs, and the logarithm of the time of run i.
struct Shape {
  const char* name;
  std::size_t runs;
  std::size_t most_found;  // of kHistories
  std::function<double(Random&, std::size_t)> log_of;
};
constexpr std::size_t kHistories = FLEET_TEST_HISTORIES;

auto NoiseOf(double deviation) {
  return [=](Random& random, std::size_t) { return deviation * random.Normal(); };
}

// A cold cache in this share of the runs.
auto TwoKinds(double share, double factor) {
  return [=](Random& random, std::size_t) {
    const double cold = random.Uniform() < share ? std::log(factor) : 0;
    return cold + 0.05 * random.Normal();
  };
}

auto Weekends(double factor, double deviation) {
  return [=](Random& random, std::size_t i) {
    return (i % 7 >= 5 ? std::log(factor) : 0) + deviation * random.Normal();
  };
}

std::vector<Shape> Shapes() {
  const auto drift = [](double total, double deviation) {
    return [=](Random& random, std::size_t i) {
      return std::log(1 + total * static_cast<double>(i) / kRuns) + deviation * random.Normal();
    };
  };
  // A run is like the one before it.
  const auto lasting = [last = 0.0](Random& random, std::size_t i) mutable {
    last = i == 0 ? 0.15 * random.Normal() : 0.5 * last + 0.15 * std::sqrt(0.75) * random.Normal();
    return last;
  };
  return {{"noise of 5 %", kRuns, 0, NoiseOf(0.05)},
          {"noise of 15 %", kRuns, 0, NoiseOf(0.15)},
          {"noise of 30 %", kRuns, 0, NoiseOf(0.3)},
          {"noise of 15 %, 365 runs", 365, 0, NoiseOf(0.15)},
          {"half of the runs take twice the time", kRuns, 1, TwoKinds(0.5, 2)},
          {"30 % of the runs take twice the time", kRuns, 1, TwoKinds(0.3, 2)},
          {"7 % of the runs take three times the time", kRuns, 1, TwoKinds(0.07, 3)},
          {"15 % of the runs take three times the time", kRuns, 1, TwoKinds(0.15, 3)},
          {"weekends take 1.3 times the time", kRuns, 0, Weekends(1.3, 0.05)},
          {"weekends take twice the time, noise of 15 %", kRuns, 0, Weekends(2, 0.15)},
          {"drift by half, noise of 2 %", kRuns, 0, drift(0.5, 0.02)},
          {"drift to twice, noise of 5 %", kRuns, 2, drift(1, 0.05)},
          {"drift by half, noise of 15 %", kRuns, 4, drift(0.5, 0.15)},
          {"noise of 15 % that lasts", kRuns, 16, lasting},
          {"20 runs, noise of 15 %", 20, 2, NoiseOf(0.15)},
          {"10 runs, noise of 30 %", 10, 2, NoiseOf(0.3)},
          {"8 runs, noise of 15 %", 8, 4, NoiseOf(0.15)},
          {"5 runs, noise of 5 %", 5, 2, NoiseOf(0.05)},
          {"5 runs, noise of 15 %", 5, 4, NoiseOf(0.15)},
          {"3 runs, noise of 30 %", 3, 14, NoiseOf(0.3)}};
}

std::size_t FalseJumps(const Shape& shape) {
  std::size_t found = 0;
  for (unsigned seed = 0; seed < kHistories; ++seed) {
    Random random(seed);
    std::vector<double> times;
    for (std::size_t i = 0; i < shape.runs; ++i)
      times.push_back(2e6 * std::exp(shape.log_of(random, i)));
    found += FindJumps(times).empty() ? 0 : 1;
  }
  return found;
}

struct Power {
  std::size_t found = 0, in_range = 0, others = 0;  // of 100 histories with a jump
};
// `log_of`: what the jump by `factor` is added to.
Power PowerOf(const std::function<double(Random&, std::size_t)>& log_of, double factor) {
  Power power;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const std::size_t at = 30 + seed % 30;
    bool is_found = false;
    Random random(seed);
    std::vector<double> times;
    for (std::size_t i = 0; i < kRuns; ++i)
      times.push_back(2e6 * (i < at ? 1 : factor) * std::exp(log_of(random, i)));
    for (const Jump& jump : FindJumps(times)) {
      const bool is_near = jump.at + 5 >= at && jump.at <= at + 5;
      if (!is_near) ++power.others;
      if (is_near && jump.first <= at && at <= jump.last) ++power.in_range;
      is_found = is_found || is_near;
    }
    power.found += is_found ? 1 : 0;
  }
  return power;
}

}  // namespace

TEST_CASE("jumps: noise, rhythms, drifts and runs of two kinds have none") {
  for (const Shape& shape : Shapes()) {
    INFO(shape.name);
    CHECK(FalseJumps(shape) <= shape.most_found);
  }
}

TEST_CASE("jumps: what is found among noise") {
  const auto check = [](double noise, double factor, std::size_t least) {
    const Power power = PowerOf(NoiseOf(noise), factor);
    INFO(noise << ", " << factor);
    CHECK(power.found >= least);
    CHECK(power.in_range >= power.found * 9 / 10);
    CHECK(power.others <= 2);
  };
  check(0.05, 1.2, 95);
  check(0.1, 1.3, 80);
  check(0.15, 1.4, 70);
  check(0.2, 1.6, 75);
  CHECK(PowerOf(TwoKinds(0.07, 3), 1.4).found >= 90);
}

// Not a test, and not run with the tests: prints the table of docs/measurements/fleet.md
// (fleet_test "[measure]"). The tests above check the same histories.
TEST_CASE("jumps: table", "[.][measure]") {
  for (const Shape& shape : Shapes()) std::printf("| %s | %zu |\n", shape.name, FalseJumps(shape));
  for (const double noise : {0.05, 0.1, 0.15, 0.2})
    for (const double factor : {1.2, 1.3, 1.4, 1.6, 2.0}) {
      const Power power = PowerOf(NoiseOf(noise), factor);
      std::printf("| %.0f %% | %.1f | %zu | %zu | %zu |\n", noise * 100, factor, power.found,
                  power.in_range, power.others);
    }
  for (const double share : {0.07, 0.3}) {
    const Power power = PowerOf(TwoKinds(share, 3), 1.4);
    std::printf("| %.0f %% of three times the time | 1.4 | %zu | %zu | %zu |\n", share * 100,
                power.found, power.in_range, power.others);
  }
  for (const double factor : {1.4, 2.0}) {
    const Power power = PowerOf(Weekends(1.5, 0.05), factor);
    std::printf("| weekends of 1.5 times the time | %.1f | %zu | %zu | %zu |\n", factor,
                power.found, power.in_range, power.others);
  }
}

}  // namespace tlparse
