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

}  // namespace
}  // namespace tlparse
