#include "base/spilling_vector.h"

#include <algorithm>
#include <cstdint>

#include "tests/base/temp_directory.h"
#include "tests/catch2.h"

namespace tlparse {
namespace {

TEST_CASE("What is pushed stays, in memory and after the move to a file", "[spilling_vector]") {
  const TempDirectory directory;
  SpillingVector<std::int64_t> vector(directory.path());
  CHECK(vector.empty());
  constexpr std::int64_t kCount = 3 * SpillingBytes::kMostInMemory / sizeof(std::int64_t);
  for (std::int64_t i = 0; i < kCount; ++i) REQUIRE(vector.Push(kCount - i));
  REQUIRE(vector.size() == kCount);
  CHECK(vector[0] == kCount);
  std::sort(vector.begin(), vector.end());
  bool is_sorted = true;
  for (std::int64_t i = 0; i < kCount; ++i)
    is_sorted &= vector[static_cast<std::size_t>(i)] == i + 1;
  CHECK(is_sorted);
  CHECK(std::filesystem::is_empty(directory.path()));  // the file has no name
  vector.Free();
  CHECK(vector.empty());
  REQUIRE(vector.Push(7));
  CHECK(vector[0] == 7);
}

TEST_CASE("A folder that takes no file is an error once memory is not enough",
          "[spilling_vector]") {
  SpillingVector<std::int64_t> vector("/nonexistent");
  REQUIRE(vector.Push(1));
  const Result<void> grown = vector.Reserve(SpillingBytes::kMostInMemory);
  REQUIRE_FALSE(grown);
  CHECK(grown.error().code == ErrorCode::kIo);
  CHECK(vector[0] == 1);
}

}  // namespace
}  // namespace tlparse
