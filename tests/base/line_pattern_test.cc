#include "base/line_pattern.h"

#include <random>
#include <regex>
#include <string>

#include "tests/catch2.h"

namespace tlparse {
namespace {

// The matched text; "-": none.
std::string Found(std::string_view pattern, std::string_view line, bool is_case_sensitive = true) {
  auto made = LinePattern::Make(pattern, is_case_sensitive);
  if (!made) return "error";
  const auto match = made->Find(line, 0);
  return match ? std::string(line.substr(match->begin, match->end - match->begin)) : "-";
}

TEST_CASE("LinePattern finds what its pattern says", "[line_pattern]") {
  CHECK(Found("add\\w+", "aten.addmm.default") == "addmm");
  CHECK(Found("addmm|gelu", "aten.gelu(x)") == "gelu");
  CHECK(Found("buf\\d{2,3}\\b", "buf1 = buf12") == "buf12");
  CHECK(Found("^def", "  def") == "-");
  CHECK(Found("^def", "def f():") == "def");
  CHECK(Found("\\):$", "f(): g():") == "):");
  CHECK(Found("\\bgelu\\b", "gelu_1") == "-");
  CHECK(Found("\\bgelu\\b", "a.gelu.b") == "gelu");
  CHECK(Found("\\Belu", "gelu") == "elu");
  CHECK(Found("a[]x]", "a]") == "a]");
  CHECK(Found("[a-z][-+][^a-x]", "x-y") == "x-y");
  CHECK(Found("f\\([\\d.]+\\)", "g f(1.5)") == "f(1.5)");
  CHECK(Found("{8}", "x{8}") == "{8}");  // no number of times: there is nothing before it
}

TEST_CASE("LinePattern knows cases", "[line_pattern]") {
  CHECK(Found("addmm", "AddMM", false) == "AddMM");
  CHECK(Found("addmm", "AddMM") == "-");
  CHECK(Found("[a-z]", "X", false) == "X");
}

TEST_CASE("LinePattern takes whole characters", "[line_pattern]") {
  CHECK(Found("µ+s", "12 µs") == "µs");
  CHECK(Found("2.s", "12µs") == "2µs");
  CHECK(Found("2..s", "12µs") == "-");
  CHECK(Found("[^a]{2}$", "a日本") == "日本");
}

TEST_CASE("LinePattern says what is wrong", "[line_pattern]") {
  for (const char* wrong :
       {"(", ")", "a)", "[", "[a", "*", "a|*", "\\", "\\q", "(?=a)", "a{2,1}", "a{1001}", "a{2",
        "x*", "a|", "^$", "((a{1000}){1000})", "[é]", "\\1"}) {
    INFO(wrong);
    CHECK(Found(wrong, "a") == "error");
  }
  CHECK(Found(std::string(5000, '(') + "a" + std::string(5000, ')'), "a") == "error");
}

TEST_CASE("LinePattern takes linear time", "[line_pattern]") {
  const std::string line = std::string(200000, 'a') + "b";
  const auto started = std::chrono::steady_clock::now();
  CHECK(Found("(a+)+$", line) == "-");
  CHECK(Found("(a|aa)+c", line) == "-");
  CHECK(Found("(a*)*(a*)*(a*)*c", line) == "-");
  CHECK(Found("(.*)(.*)(.*)(.*)[0-9]", line) == "-");
  CHECK(std::chrono::steady_clock::now() - started < std::chrono::seconds(20));
}

TEST_CASE("LinePattern ends in time", "[line_pattern]") {
  // Nearly each byte leads to a new state.
  std::mt19937 random(1);
  std::string line;
  for (int i = 0; i < 4000000; ++i) line += random() % 2 == 0 ? 'a' : 'b';
  auto made = LinePattern::Make("a[ab]{900}c", true);
  REQUIRE(made);
  const auto started = std::chrono::steady_clock::now();
  made->set_deadline(started + std::chrono::milliseconds(200));
  CHECK(!made->Find(line, 0));
  CHECK(made->is_late());
  CHECK(std::chrono::steady_clock::now() - started < std::chrono::seconds(10));
}

std::string RandomPattern(std::mt19937& random, int depth) {
  const char* atoms[] = {"a", "b", "c", ".", "[ab]", "[^a]", "\\w", "\\b", "^", "$", "\\B", " "};
  std::string pattern;
  for (auto parts = 1 + random() % 3; parts > 0; --parts) {
    std::string atom = depth > 0 && random() % 3 == 0
                           ? "(?:" + RandomPattern(random, depth - 1) + ")"
                           : atoms[random() % 12];
    const bool is_repeatable = atom != "^" && atom != "$" && atom != "\\b" && atom != "\\B";
    const char* repeats[] = {"*", "+", "?", "{1,2}", "{2}", "", "", ""};
    pattern += atom + (is_repeatable ? repeats[random() % 8] : "");
  }
  return random() % 4 == 0 && depth > 0 ? pattern + "|" + RandomPattern(random, depth - 1)
                                        : pattern;
}

// The standard library's regular expressions are slow, and an oracle. What matches is theirs too.
TEST_CASE("LinePattern agrees with the standard library", "[line_pattern]") {
  std::mt19937 random(20261128);
  int compared = 0, matched = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string pattern = RandomPattern(random, 2);
    auto made = LinePattern::Make(pattern, true);
    const std::regex theirs(pattern);
    INFO(pattern);
    REQUIRE(std::regex_search(std::string(), theirs) == !made);
    if (!made) continue;
    for (int n = 0; n < 8; ++n) {
      std::string line;
      for (auto letters = random() % 9; letters > 0; --letters) line += "abc "[random() % 4];
      const auto match = made->Find(line, 0);
      INFO(line);
      REQUIRE(std::regex_search(line, theirs) == match.has_value());
      ++compared;
      if (!match) continue;
      ++matched;
      // Assertions look at what is around the match: only where there are none.
      if (pattern.find_first_of("^$") != std::string::npos ||
          pattern.find("\\b") != std::string::npos || pattern.find("\\B") != std::string::npos)
        continue;
      CHECK(std::regex_match(line.substr(match->begin, match->end - match->begin), theirs));
    }
  }
  CHECK(compared > 3000);
  CHECK(matched > 1000);
}

}  // namespace
}  // namespace tlparse
