#include "log/line_index.h"

#include <random>
#include <string>

#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

namespace {

std::int64_t NaiveStanzas(std::string_view bytes, std::vector<StanzaStart>& starts) {
  std::int64_t line = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (at == 0 || (bytes[at - 1] == '\n' && bytes[at] != '\t')) starts.push_back({at, line});
    if (bytes[at] == '\n') ++line;
  }
  return line;
}

}  // namespace

TEST_CASE("FindStanzas finds what a byte-by-byte search finds, whatever the length",
          "[line_index]") {
  std::mt19937 random(20261121);  // NOLINT: the same inputs every time
  for (const std::string alphabet : {"\n\tx", "\n\txxxxxxxxxxxxxxxxx\r", "\n", "\t", "x"}) {
    for (std::size_t size = 0; size <= 200; ++size) {
      for (int round = 0; round < 20; ++round) {
        std::string text;
        while (text.size() < size) text += alphabet[random() % alphabet.size()];
        std::vector<StanzaStart> expected;
        std::vector<StanzaStart> found;
        const std::int64_t lines = NaiveStanzas(text, expected);
        REQUIRE(FindStanzas(text, found) == lines);
        bool is_equal = found.size() == expected.size();
        for (std::size_t i = 0; is_equal && i < found.size(); ++i) {
          is_equal = found[i].offset == expected[i].offset && found[i].line == expected[i].line;
        }
        CAPTURE(text);
        REQUIRE(is_equal);
      }
    }
  }
}

TEST_CASE("FindStanzas appends to what it is given", "[line_index]") {
  std::vector<StanzaStart> starts = {{7, 3}};
  CHECK(FindStanzas("a\nb\n", starts) == 2);
  REQUIRE(starts.size() == 3);
  CHECK(starts[0].offset == 7);
  CHECK(starts[2].offset == 2);
  CHECK(starts[2].line == 1);
}
