#include "base/line_pattern.h"

#include <chrono>
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
  for (const char* wrong : {"(", ")", "a)", "[", "[a", "*", "a|*", "\\", "\\q", "(?=a)", "a{2,1}",
                            "a{1001}", "x*", "a|", "^$", "((a{1000}){1000})", ".{1000}", "\\1"}) {
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
  CHECK(Found("a[ab]{400}c", std::string(LinePattern::kMostBytes, 'a')) == "-");
  CHECK(std::chrono::steady_clock::now() - started < std::chrono::seconds(20));
}

TEST_CASE("LinePattern looks at the first megabyte of a line", "[line_pattern]") {
  const std::string line = std::string(LinePattern::kMostBytes - 2, 'a') + "bcd";
  CHECK(Found("b", line) == "b");
  CHECK(Found("d", line) == "-");
  CHECK(Found("c$", line) == "-");
}

}  // namespace
}  // namespace tlparse
