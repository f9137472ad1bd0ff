#include "base/json_count.h"

#include <string>

#include "tests/catch2.h"

namespace tlparse {
namespace {

std::string List(std::size_t count, const std::string& value) {
  std::string json = "[" + value;
  for (std::size_t i = 1; i < count; ++i) json += "," + value;
  return json + "]";
}

TEST_CASE("Values are counted, and what stands in strings is not", "[json_count]") {
  CHECK_FALSE(HasTooManyJsonValues(""));
  CHECK_FALSE(HasTooManyJsonValues(List(kMostJsonValues - 1, "1")));
  CHECK(HasTooManyJsonValues(List(kMostJsonValues, "1")));  // the list is a value, too
  CHECK(HasTooManyJsonValues(List(kMostJsonValues / 2, "[]")));
  CHECK(HasTooManyJsonValues("{\"a\":" + List(kMostJsonValues, "\"x,y\"") + "}"));
  CHECK_FALSE(HasTooManyJsonValues(List(100, "\"" + std::string(50'000, ',') + "\"")));
  CHECK_FALSE(HasTooManyJsonValues(List(100'000, R"("\",,,,,,,,,,,,,,,,[[[[[[[[::::::::::")")));
  CHECK_FALSE(HasTooManyJsonValues("\"" + std::string(2 * kMostJsonValues, ',')));  // open
  CHECK_FALSE(HasTooManyJsonValues(std::string(2 * kMostJsonValues, '\\')));
}

}  // namespace
}  // namespace tlparse
