#include <random>
#include <string>

#include "facts/text/sequence_diff.h"
#include "facts/text/text_diff.h"
#include "tests/catch2.h"

namespace tlparse {
namespace {

// The script as text: "=" keep, "-x" only in a, "+x" only in b.
std::string Script(const std::string& a, const std::string& b, std::size_t limit = 2000) {
  std::string text;
  for (const EditStep& step : AlignSequences(
           a.size(), b.size(), [&](std::size_t i, std::size_t j) { return a[i] == b[j]; }, limit)) {
    if (step.kind == EditStep::Kind::kKeep) text += '=';
    if (step.kind == EditStep::Kind::kDelete) text += std::string("-") + a[step.a];
    if (step.kind == EditStep::Kind::kInsert) text += std::string("+") + b[step.b];
  }
  return text;
}

}  // namespace

TEST_CASE("an insertion is one difference, whatever follows") {
  CHECK(Script("abcdef", "abXcdef") == "==+X====");
  CHECK(Script("abcdef", "abdef") == "==-c===");
  CHECK(Script("", "ab") == "+a+b");
  CHECK(Script("ab", "") == "-a-b");
  CHECK(Script("", "").empty());
}

TEST_CASE("deletions come before the insertions of the same place") {
  CHECK(Script("abc", "axc") == "=-b+x=");
}

TEST_CASE("beyond the limit the script is still valid") {
  CHECK(Script("xabcy", "xdefy", 1) == "=-a-b-c+d+e+f=");
}

TEST_CASE(
    "every script turns a into b, with as few steps as the longest common subsequence allows") {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    std::string a, b;
    for (std::size_t i = random() % 12; i > 0; --i) a += static_cast<char>('a' + random() % 3);
    for (std::size_t i = random() % 12; i > 0; --i) b += static_cast<char>('a' + random() % 3);
    std::vector<std::vector<std::size_t>> common(a.size() + 1,
                                                 std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 1; i <= a.size(); ++i) {
      for (std::size_t j = 1; j <= b.size(); ++j) {
        common[i][j] = a[i - 1] == b[j - 1] ? common[i - 1][j - 1] + 1
                                            : std::max(common[i - 1][j], common[i][j - 1]);
      }
    }
    std::string rebuilt_a, rebuilt_b;
    std::size_t kept = 0;
    for (const EditStep& step : AlignSequences(
             a.size(), b.size(), [&](std::size_t i, std::size_t j) { return a[i] == b[j]; })) {
      if (step.kind != EditStep::Kind::kInsert) rebuilt_a += a[step.a];
      if (step.kind != EditStep::Kind::kDelete) rebuilt_b += b[step.b];
      if (step.kind == EditStep::Kind::kKeep) {
        ++kept;
        REQUIRE(a[step.a] == b[step.b]);
      }
    }
    INFO(a << " / " << b);
    REQUIRE(rebuilt_a == a);
    REQUIRE(rebuilt_b == b);
    REQUIRE(kept == common[a.size()][b.size()]);
  }
}

TEST_CASE("a unified diff") {
  CHECK(UnifiedDiff("a\nb\nc\n", "a\nb\nc\n", "x", "y").empty());
  CHECK(UnifiedDiff("a\nb\nc\n", "a\nB\nc\n", "x", "y") ==
        "--- x\n+++ y\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
  CHECK(UnifiedDiff("", "a\n", "x", "y") == "--- x\n+++ y\n@@ -0,0 +1,1 @@\n+a\n");
}

TEST_CASE("the first line that differs") {
  CHECK_FALSE(FindFirstDifference("a\nb", "a\nb"));
  const auto difference = FindFirstDifference("a\n  b\nc", "a\n  d");
  REQUIRE(difference);
  CHECK(difference->a_line == 2);
  CHECK(difference->a == "b");
  CHECK(difference->b == "d");
  CHECK(FindFirstDifference("a", "a\nb")->a.empty());
}

}  // namespace tlparse
