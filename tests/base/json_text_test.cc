#include "base/json_text.h"

#include "base/json_string.h"
#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

TEST_CASE("MemberText gives the last of repeated members and nothing for absent ones",
          "[json_text]") {
  const std::string_view object = R"({"a": {"b": [1, "}"]}, "b": 1, "b": 2})";
  CHECK(MemberText(object, "a") == R"({"b": [1, "}"]})");
  CHECK(MemberText(object, "b") == "2");
  CHECK(MemberText(object, "c").empty());
}

TEST_CASE("MemberText compares names after decoding their escapes", "[json_text]") {
  CHECK(MemberText(R"( {"\u0061" : [1, {"a": 2}] , "b": "]"} )", "a") == R"([1, {"a": 2}])");
  CHECK(MemberText(R"({"a": 1, "\u0061": {}})", "a") == "{}");
  CHECK(MemberText("[1]", "").empty());
}

TEST_CASE("WithoutLargeValues empties large lists and objects of two levels", "[json_text]") {
  std::string list = "[0";
  for (int i = 0; i < 10'000; ++i) list += ",0";
  list += ']';
  CHECK(WithoutLargeValues(R"({"a": 1, "b": [2], "c": )" + list + "}") ==
        R"({"a":1,"b":[2],"c":[]})");
  CHECK(WithoutLargeValues(R"({"m": {"x": "y", "l": )" + list + R"(, "o": {"l": )" + list +
                           "}}}") == R"({"m":{"x":"y","l":[],"o":{}}})");
}

TEST_CASE("Integers of 64 bits keep their digits when others are too large", "[json_text]") {
  CHECK(WithoutBigIntegers(
            R"({"a": 1795249801003000001, "b": [-9223372036854775808,)"
            R"( 9223372036854775807, 18446744073709551615], "c": "123456789012345678901"})") ==
        R"({"a": 1795249801003000001, "b": [-9223372036854775808,)"
        R"( 9223372036854775807, 18446744073709551615], "c": "123456789012345678901"})");
  CHECK(WithoutBigIntegers("[-9223372036854775809, 18446744073709551616, 1e999]") ==
        "[-9223372036854775809e0, 18446744073709551616e0, 1e300]");
}

TEST_CASE("QuoteOddNumbers quotes long numbers outside strings only", "[json_text]") {
  CHECK(
      QuoteOddNumbers(
          R"([-12345678901234567890,"12345678901234567890 \" 1234567890123456789",1.2345678901234567890,7,1e999])") ==
      R"(["-12345678901234567890","12345678901234567890 \" 1234567890123456789",1.2345678901234567890,7,"1e999"])");
}

TEST_CASE("UnescapeJson decodes every escape and refuses damaged ones", "[json_string]") {
  CHECK(UnescapeJson(R"(a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00)") ==
        "a\"\\/\b\f\n\r\t\u00e9\U0001F600");
  CHECK(UnescapeJson(R"(\ud83d.\ude00\ud83d\u0041)") == "\uFFFD.\uFFFD\uFFFDA");
  for (const std::string_view damaged : {R"(\x)", R"(\u12)", R"(\u12g4)", R"(\ud83d\u1)", "\\"})
    CHECK_FALSE(UnescapeJson(damaged));
}

TEST_CASE("EndOfJsonString finds the closing quote in text of any kind", "[json_string]") {
  for (std::size_t size = 0; size < 40; ++size) {
    const std::string plain(size, 'x');
    const std::string text = plain + R"(\"\\" tail)";
    CHECK(EndOfJsonString(text.data(), text.data() + text.size()) == text.data() + size + 5);
    CHECK(EndOfJsonString(plain.data(), plain.data() + size) == nullptr);
    const std::string open = plain + "\\";
    CHECK(EndOfJsonString(open.data(), open.data() + open.size()) == nullptr);
  }
}
