// The search for the smallest set of differences, with tests that are plain functions.
#include "answers/experiment/bisection.h"

#include <algorithm>
#include <cmath>

#include "tests/catch2.h"

namespace tlparse {
namespace {

using Set = std::vector<std::size_t>;

bool Holds(const Set& all, const Set& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

Bisection Search(std::size_t count, const Set& cause, std::size_t most_runs = 1000) {
  Result<Bisection> found = Bisect(count, most_runs, [&](const Set& set) -> Result<BisectionState> {
    return Holds(set, cause) ? BisectionState::kBad : BisectionState::kGood;
  });
  REQUIRE(found);
  return *found;
}

}  // namespace

TEST_CASE("bisection: one cause takes at most log2 n and one more runs") {
  for (std::size_t count = 2; count <= 70; ++count) {
    for (std::size_t cause = 0; cause < count; ++cause) {
      const Bisection found = Search(count, {cause});
      REQUIRE(found.cause == Set{cause});
      REQUIRE(found.is_sure);
      REQUIRE(found.is_smallest);
      REQUIRE(static_cast<double>(found.runs) <= std::ceil(std::log2(count)) + 1);
    }
  }
}

TEST_CASE("bisection: several that act together are found, and none else") {
  for (const Set& cause : {Set{0, 1}, Set{0, 11}, Set{3, 4, 9}, Set{0, 3, 6, 9}}) {
    const Bisection found = Search(12, cause);
    CHECK(found.cause == cause);
    CHECK(found.is_sure);
    CHECK(found.is_smallest);
  }
}

TEST_CASE("bisection: of what is not known nothing is claimed") {
  const Bisection few = Search(12, {0, 11}, 3);
  CHECK(few.runs == 3);
  CHECK_FALSE(few.is_smallest);
  const Result<Bisection> unknown =
      Bisect(4, 100, [](const Set&) -> Result<BisectionState> { return BisectionState::kUnknown; });
  REQUIRE(unknown);
  CHECK_FALSE(unknown->is_smallest);
  CHECK_FALSE(Search(1, {5}).is_sure);
  const Result<Bisection> failed = Bisect(
      4, 100, [](const Set&) -> Result<BisectionState> { return Fail(ErrorCode::kIo, "planted"); });
  CHECK_FALSE(failed);
}

}  // namespace tlparse
