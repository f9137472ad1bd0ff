// Jumps in a series of times, among noise.
#include <cmath>
#include <functional>
#include <random>

#include "fleet/fleet_jumps.h"
#include "tests/catch2.h"

namespace tlparse {
namespace {

constexpr std::size_t kRuns = 90;

// A history with normal noise of this standard deviation; `factor` of each run.
std::vector<double> History(double noise, const std::function<double(std::size_t)>& factor,
                            std::size_t runs = kRuns, unsigned seed = 7) {
  std::mt19937 random(seed);
  std::vector<double> times;
  for (std::size_t i = 0; i < runs; ++i) {
    double sum = 0;  // of twelve uniform numbers: nearly normal, the same with each library
    for (int k = 0; k < 12; ++k) sum += static_cast<double>(random()) / 4294967296.0;
    times.push_back(2e6 * factor(i) * std::exp(noise * (sum - 6)));
  }
  return times;
}

std::vector<std::size_t> Places(const std::vector<double>& times) {
  std::vector<std::size_t> places;
  for (const Jump& jump : FindJumps(times)) places.push_back(jump.at);
  return places;
}

using Expected = std::vector<std::size_t>;

}  // namespace

TEST_CASE("jumps: a history without one has none, whatever its noise") {
  for (const double noise : {0.0, 0.02, 0.05, 0.1, 0.2}) {
    int found = 0;
    for (unsigned seed = 0; seed < 100; ++seed)
      found += FindJumps(History(
                             noise, [](std::size_t) { return 1; }, kRuns, seed))
                       .empty()
                   ? 0
                   : 1;
    CHECK(found <= 3);
  }
}

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
}

}  // namespace tlparse
