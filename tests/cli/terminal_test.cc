#include "cli/terminal.h"

#include "tests/catch2.h"

namespace tlparse {
namespace {

TEST_CASE("DisplayWidth counts the columns of a terminal") {
  CHECK(DisplayWidth("") == 0);
  CHECK(DisplayWidth("forward()") == 9);
  CHECK(DisplayWidth("größe…⏎") == 7);
  CHECK(DisplayWidth("日本語") == 6);
  CHECK(DisplayWidth("한국") == 4);
  CHECK(DisplayWidth("e\u0301") == 1);           // a combining acute accent
  CHECK(DisplayWidth("\u20dd\u200d") == 0);      // an enclosing circle, a zero-width joiner
  CHECK(DisplayWidth("\u231a\U0001f680") == 4);  // a watch, a rocket
  CHECK(DisplayWidth("\U00020000") == 2);        // an ideograph beyond the basic plane
}

TEST_CASE("A table that is too wide wraps headings, cuts texts, and leaves columns out") {
  using Align = Table::Align;
  Table table({{"name"},
               {"last record", Align::kRight},
               {"more", Align::kLeft, 2},
               {"left", Align::kLeft, 1}});
  table.Add({"a_function_of_a_long_name", "123.4 ms", "abcdefgh", "ijklmnop"});
  CHECK(table.Lines(0) ==
        std::vector<std::string>{"name                       last record  more      left",
                                 "a_function_of_a_long_name     123.4 ms  abcdefgh  ijklmnop"});
  CHECK(table.Lines(46) ==
        std::vector<std::string>{"name                  last  more      left",
                                 "                    record",
                                 "a_function_of_a…  123.4 ms  abcdefgh  ijklmnop"});
  CHECK(table.Lines(34) == std::vector<std::string>{"name                last  left",
                                                    "                  record",
                                                    "a_function_of…  123.4 ms  ijklmnop",
                                                    "left out at this width: more"});
  for (const int width : {8, 20, 30, 40, 60}) {
    for (const std::string& line : table.Lines(width)) {
      const bool is_told = line.find("left out") != std::string::npos || width < 18;
      CHECK((is_told || DisplayWidth(line) <= width));
    }
  }
}

TEST_CASE("A place is cut at its begin") {
  Table table({{"place", Table::Align::kLeft, 0, true}, {"code"}});
  table.Add({"/u/jobs/ab/größe/model.py:12", "y = relu(x)"});
  table.Add({"(no line known: 0/0 backward)", ""});
  const std::vector<std::string> lines = table.Lines(30);
  REQUIRE(lines.size() == 3);
  CHECK(lines[1] == "…röße/model.py:12  y = relu(x)");
  CHECK(lines[2].starts_with("(no line known: …"));  // a text in brackets is no place
}

}  // namespace
}  // namespace tlparse
