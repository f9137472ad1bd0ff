#include "base/json_writer.h"

#include <fmt/format.h>

#include "tests/catch2.h"

namespace tlparse {
namespace {

std::string Quoted(std::string_view text) {
  std::string json;
  AppendJsonString(text, json);
  return json;
}

TEST_CASE("AppendJsonString escapes each character at each place of a block") {
  for (int c = 1; c < 0x80; ++c) {
    std::string escape;
    switch (c) {
      case '"':
        escape = "\\\"";
        break;
      case '\\':
        escape = "\\\\";
        break;
      case '\n':
        escape = "\\n";
        break;
      case '\r':
        escape = "\\r";
        break;
      case '\t':
        escape = "\\t";
        break;
      default:
        escape = c < 0x20 ? fmt::format("\\u{:04x}", c) : std::string(1, static_cast<char>(c));
    }
    for (std::size_t before = 0; before < 34; ++before) {
      for (const std::size_t behind : std::initializer_list<std::size_t>{0, 1, 15, 16, 40}) {
        const std::string head(before, 'h');
        const std::string tail(behind, 't');
        REQUIRE(Quoted(head + static_cast<char>(c) + tail) == "\"" + head + escape + tail + "\"");
      }
    }
  }
}

TEST_CASE("AppendJsonString: many escapes in a row, and long texts") {
  std::string expected;
  for (int i = 0; i < 10'000; ++i) expected += "\\u0001";
  CHECK(Quoted(std::string(10'000, '\1')) == "\"" + expected + "\"");
  CHECK(Quoted(std::string(100'000, 'x')) == "\"" + std::string(100'000, 'x') + "\"");
  CHECK(Quoted("") == "\"\"");
}

TEST_CASE("AppendJsonString: what is not UTF-8 becomes U+FFFD") {
  CHECK(Quoted("a\xff"
               "b") ==
        "\"a\xEF\xBF\xBD"
        "b\"");
  CHECK(Quoted("é€😀") == "\"é€😀\"");
}

}  // namespace
}  // namespace tlparse
