// Which processes of a run lived at the same time.
#include "model/launches.h"

#include "tests/catch2.h"
#include "tests/model/time.h"

namespace tlparse {
namespace {

LogLife Life(std::optional<std::int64_t> rank, double start_s, double end_s) {
  static std::int64_t id = 0;
  return {++id, rank, static_cast<std::int64_t>(start_s * kSecond),
          static_cast<std::int64_t>(end_s * kSecond)};
}

using Ordinals = std::vector<std::int64_t>;

TEST_CASE("launches: ranks of one job are one launch, a late one included") {
  CHECK(AssignLaunches({}) == Ordinals{});
  CHECK(AssignLaunches({Life(0, 0, 10), Life(1, 0.1, 9), Life(2, 50, 60)}) == Ordinals{1, 1, 1});
}

TEST_CASE("launches: a second log of a rank begins a later one") {
  CHECK(AssignLaunches({Life(1, 20, 30), Life(0, 0, 10), Life(1, 0, 3), Life(0, 20.5, 30)}) ==
        Ordinals{2, 1, 1, 2});
}

TEST_CASE("launches: a log that overlaps the rank's other one is of the same launch") {
  CHECK(AssignLaunches({Life(0, 0, 10), Life(0, 5, 12), Life(0, 20, 30), Life(1, 0, 10)}) ==
        Ordinals{1, 1, 2, 1});
}

TEST_CASE("launches: a rank that took part in few of them goes where it fits in time") {
  // Rank 2 has no log of the first launch, rank 3 none of the second.
  CHECK(AssignLaunches({Life(0, 0, 10), Life(1, 0, 10), Life(0, 20, 30), Life(1, 20, 30),
                        Life(0, 40, 50), Life(1, 40, 50), Life(2, 19.8, 30), Life(2, 40, 44),
                        Life(3, 0.2, 3), Life(3, 41, 50)}) ==
        Ordinals{1, 1, 2, 2, 3, 3, 2, 3, 1, 3});
}

TEST_CASE("launches: clocks of hosts that are off by seconds") {
  // The second host's clock is 4 s ahead: its first logs end after the others' second ones began.
  CHECK(AssignLaunches({Life(0, 0, 10), Life(1, 0, 10), Life(2, 4, 14), Life(3, 4, 14),
                        Life(0, 13, 20), Life(1, 13, 20), Life(2, 17, 24), Life(3, 17, 24)}) ==
        Ordinals{1, 1, 1, 1, 2, 2, 2, 2});
}

TEST_CASE("launches: logs without rank form none") {
  CHECK(AssignLaunches({Life({}, 0, 10), Life({}, 20, 30), Life({}, 40, 50)}) == Ordinals{1, 1, 1});
  CHECK(AssignLaunches({Life({}, 0, 10), Life({}, 25, 30), Life(0, 0, 10), Life(0, 20, 30)}) ==
        Ordinals{1, 2, 1, 2});
  LogLife unknown;
  unknown.rank = 0;
  CHECK(AssignLaunches({unknown, Life(0, 0, 10), Life(0, 20, 30)}) == Ordinals{1, 1, 2});
}

}  // namespace
}  // namespace tlparse
