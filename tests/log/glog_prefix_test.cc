#include "log/glog_prefix.h"

#include <string>

#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

TEST_CASE("A header's parts are found", "[glog_prefix]") {
  const std::string line =
      R"([rank12]:V0229 23:59:59.999999 4242 torch/_dynamo/a b.py:304] {"x": "]"})";
  const auto prefix = ParseGlogPrefix(line);
  REQUIRE(prefix);
  CHECK(prefix->rank == 12);
  CHECK(prefix->pid == 4242);
  CHECK(prefix->path == "torch/_dynamo/a b.py");
  CHECK(prefix->source_line == 304);
  CHECK(prefix->json == R"({"x": "]"})");
}

TEST_CASE("Several spaces in front of the pid and a thread id are a header's", "[glog_prefix]") {
  const auto prefix = ParseGlogPrefix("V1121 08:30:01.000000    139872345678901 a.py:1] {}");
  REQUIRE(prefix);
  CHECK(prefix->pid == 139872345678901);
}

TEST_CASE("A header with an impossible date is a header", "[glog_prefix]") {
  for (const char* time :
       {"1321 08:30:01.000000", "0000 08:30:01.000000", "0431 08:30:01.000000",
        "1121 24:30:01.000000", "1121 08:60:01.000000", "9999 99:99:99.999999"}) {
    const std::string line = "V" + std::string(time) + " 7 a.py:1] {}";
    CAPTURE(time);
    const auto prefix = ParseGlogPrefix(line);
    REQUIRE(prefix);
    CHECK_FALSE(prefix->has_time);
    CHECK(prefix->pid == 7);
  }
  CHECK(ParseGlogPrefix("V0229 23:59:60.000000 7 a.py:1] {}")->has_time);
}

TEST_CASE("What only looks like a header is none", "[glog_prefix]") {
  const char* lines[] = {
      "",
      "V",
      "[rank0]:",
      "[rank]:V1121 08:30:01.000000 7 a.py:1] {}",
      "D1121 08:30:01.000000 7 a.py:1] {}",  // glog has no level D
      "V121 08:30:01.000000 7 a.py:1] {}",   // three digits of a date
      "V1121 08:30:01.00000 7 a.py:1] {}",   // milliseconds of a text log
      "V1121 08:30:01,000000 7 a.py:1] {}",
      "V1121T08:30:01.000000 7 a.py:1] {}",
      "V11x1 08:30:01.000000 7 a.py:1] {}",
      "V1121 08:30:01.000000 a.py:1] {}",      // no pid
      "V1121 08:30:01.000000 7 a.py] {}",      // no line
      "V1121 08:30:01.000000 7 a.py:1] text",  // TORCH_LOGS
      "V1121 08:30:01.000000 7 a.py:1] [0/0] {}",
      " V1121 08:30:01.000000 7 a.py:1] {}",
      "\tV1121 08:30:01.000000 7 a.py:1] {}",
  };
  for (const char* line : lines) {
    CAPTURE(line);
    CHECK_FALSE(ParseGlogPrefix(line));
  }
}

TEST_CASE("Every beginning of a header is read without looking behind its end", "[glog_prefix]") {
  const std::string line = "[rank3]:V1121 08:30:01.000000 7 torch/_x.py:28] {";
  for (std::size_t size = 0; size < line.size(); ++size) {
    // An allocation of just this size: the address sanitizer sees a byte too many.
    const std::string exact(line.data(), size);
    CHECK_FALSE(ParseGlogPrefix(exact));
  }
  CHECK(ParseGlogPrefix(line));
}

TEST_CASE("Numbers too large for 64 bits are no header's", "[glog_prefix]") {
  const auto rank = ParseRankPrefix("[rank99999999999999999999]:x");
  if (rank) CHECK(rank->rank >= 0);
  const auto prefix = ParseGlogPrefix("V1121 08:30:01.000000 99999999999999999999 a.py:1] {}");
  if (prefix) CHECK(prefix->pid >= 0);
}

TEST_CASE("[rankN]: says its rank and its length", "[glog_prefix]") {
  const auto rank = ParseRankPrefix("[rank10]:\tpayload");
  REQUIRE(rank);
  CHECK(rank->rank == 10);
  CHECK(rank->length == 9);
  CHECK_FALSE(ParseRankPrefix("[rank1]"));
  CHECK_FALSE(ParseRankPrefix("[rankX]:"));
  CHECK_FALSE(ParseRankPrefix("rank1]:"));
}
