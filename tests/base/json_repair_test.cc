#include "base/json_repair.h"

#include <fmt/core.h>
#include <simdjson.h>
#include <sqlite3.h>

#include <string>
#include <string_view>

#include "tests/catch2.h"

namespace tlparse {
namespace {

using namespace std::string_view_literals;

// The repaired text, or "error: …".
std::string Repair(std::string_view text) {
  const auto repaired = RepairJson(text);
  return repaired ? repaired->text : "error: " + repaired.error().message;
}

bool IsValidForSqlite(const std::string& text) {
  sqlite3* database = nullptr;
  sqlite3_stmt* statement = nullptr;
  REQUIRE(sqlite3_open(":memory:", &database) == SQLITE_OK);
  REQUIRE(sqlite3_prepare_v2(database, "SELECT json_valid(?1)", -1, &statement, nullptr) ==
          SQLITE_OK);
  sqlite3_bind_text64(statement, 1, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
  const bool is_valid = sqlite3_column_int(statement, 0) == 1;
  sqlite3_finalize(statement);
  sqlite3_close(database);
  return is_valid;
}

bool HasDuplicate(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element element;
  REQUIRE(parser.parse(text.data(), text.size()).get(element) == simdjson::SUCCESS);
  return HasDuplicateMembers(element);
}

TEST_CASE("RepairJson keeps strict JSON, without its white space", "[json_repair]") {
  constexpr std::string_view kText =
      R"( { "a" : [ 1 , -0.5e+10, true , false, null, "x\"\\\/\b\f\n\r\t\u00e4\ud83d\udd25" ] ,)"
      "\n\t\r \"b\": {}, \"c\": [] } ";
  const auto repaired = RepairJson(kText);
  REQUIRE(repaired);
  CHECK(
      repaired->text ==
      R"({"a":[1,-0.5e+10,true,false,null,"x\"\\\/\b\f\n\r\t\u00e4\ud83d\udd25"],"b":{},"c":[]})");
  CHECK_FALSE(repaired->had_nan);
  CHECK_FALSE(repaired->had_lone_surrogate);
  CHECK_FALSE(repaired->had_duplicate);
  CHECK_FALSE(repaired->had_invalid_utf8);
  CHECK_FALSE(repaired->had_control);
  for (const char* scalar : {"0", "-0", "\"\"", "null", "1e-05", "[[[]],{}]"}) {
    CHECK(Repair(scalar) == scalar);
  }
}

TEST_CASE("RepairJson turns what Python writes for no number into null", "[json_repair]") {
  const auto repaired = RepairJson(R"([NaN, Infinity, -Infinity, {"a": NaN}, "NaN"])");
  REQUIRE(repaired);
  CHECK(repaired->text == R"([null,null,null,{"a":null},"NaN"])");
  CHECK(repaired->had_nan);
}

TEST_CASE("RepairJson keeps numbers of any size as text", "[json_repair]") {
  const std::string big =
      "[18446744073709551616,-99999999999999999999999999,0.1000000000000000055511151231257827]";
  CHECK(Repair(big) == big);
  CHECK(IsValidForSqlite(big));
  const std::string digits(100'000, '7');
  CHECK(Repair(digits) == digits);
}

TEST_CASE("RepairJson replaces surrogates without a partner", "[json_repair]") {
  const auto repaired = RepairJson(R"(["\udc80", "\ud800", "\ud800\ud83d\udd25", "\udc00\ud800",)"
                                   R"("\ud800x", "\ud800\n", "\uD83D\uDD25"])");
  REQUIRE(repaired);
  CHECK(repaired->text == R"(["\ufffd","\ufffd","\ufffd\ud83d\udd25","\ufffd\ufffd",)"
                          R"("\ufffdx","\ufffd\n","\uD83D\uDD25"])");
  CHECK(repaired->had_lone_surrogate);
}

TEST_CASE("RepairJson escapes raw control characters and replaces invalid UTF-8", "[json_repair]") {
  const auto repaired =
      RepairJson("[\"a\tb\nc\0d\x1f\x7f\", \"\xc3\xa4\xff\xe2\x80\", \"\xed\xa0\x80\"]"sv);
  REQUIRE(repaired);
  CHECK(repaired->text ==
        "[\"a\\u0009b\\u000ac\\u0000d\\u001f\x7f\",\"\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\","
        "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"]");
  CHECK(repaired->had_control);
  CHECK(repaired->had_invalid_utf8);
}

TEST_CASE("RepairJson keeps the last of equal members, at its place", "[json_repair]") {
  CHECK(Repair(R"({"a": 1, "b": 2, "a": 3})") == R"({"b":2,"a":3})");
  CHECK(Repair(R"({"a": 1, "a": 2, "a": 3})") == R"({"a":3})");
  CHECK(Repair(R"({"a": {"x": 1, "x": 2}, "b": {"y": 1, "y": {"z": 0, "z": 1}}, "a": [{}]})") ==
        R"({"b":{"y":{"z":1}},"a":[{}]})");
  CHECK(Repair(R"({"a": 1, "\u0061": 2, "b": 3})") == R"({"\u0061":2,"b":3})");
  CHECK(Repair(R"({"\ud83d\udd25": 1, ")"
               "\xf0\x9f\x94\xa5"
               R"(": 2})") == "{\"\xf0\x9f\x94\xa5\":2}");
  CHECK(Repair(R"({"\n": 1, "\u000a": 2, "n": 3})") == R"({"\u000a":2,"n":3})");
  CHECK(Repair(R"([{"a": 1}, {"a": 2}])") == R"([{"a":1},{"a":2}])");
  CHECK(Repair(R"({"a": {"a": {"a": 1}}})") == R"({"a":{"a":{"a":1}}})");
  CHECK_FALSE(RepairJson(R"({"a": 1, "A": 2, "a ": 3, "": 4})")->had_duplicate);
  CHECK(RepairJson(R"({"": 1, "": 2})")->had_duplicate);
  std::string many = "{", expected = "{";
  for (int i = 0; i < 50; ++i) many += fmt::format(R"("k{}": {{"old": {}}}, )", i % 40, i);
  for (int i = 10; i < 50; ++i) expected += fmt::format(R"("k{}":{{"old":{}}},)", i % 40, i);
  CHECK(Repair(many + R"("end": 0})") == expected + R"("end":0})");
}

TEST_CASE("RepairJson tells where the text stops being JSON", "[json_repair]") {
  const auto position = [](std::string_view text) -> std::string {
    const auto repaired = RepairJson(text);
    if (repaired) return "fine";
    CHECK(repaired.error().code == ErrorCode::kBadJson);
    const std::string& message = repaired.error().message;
    const std::string_view before = "not JSON at byte ";
    REQUIRE(message.starts_with(before));
    return message.substr(before.size(), message.find(':') - before.size());
  };
  CHECK(position("") == "0");
  CHECK(position("  ") == "2");
  CHECK(position("{} x") == "3");
  CHECK(position("{}{}") == "2");
  CHECK(position("[1,]") == "3");
  CHECK(position("[,1]") == "1");
  CHECK(position("[1 2]") == "3");
  CHECK(position("{\"a\":1,}") == "7");
  CHECK(position("{\"a\" 1}") == "5");
  CHECK(position("{a: 1}") == "1");
  CHECK(position("{\"a\":}") == "5");
  CHECK(position("[1}") == "2");
  CHECK(position("{\"a\":1]") == "6");
  CHECK(position("\"abc") == "4");
  CHECK(position("\"\\x\"") == "1");
  CHECK(position("\"\\u12g4\"") == "1");
  CHECK(position("\"\\u12") == "1");
  CHECK(position("\"\\") == "1");
  CHECK(position("01") == "1");
  CHECK(position("-") == "1");
  CHECK(position("1.") == "2");
  CHECK(position("1e+") == "3");
  CHECK(position(".5") == "0");
  CHECK(position("+1") == "0");
  CHECK(position("nul") == "0");
  CHECK(position("-Inf") == "0");
  CHECK(position("'a'") == "0");
  CHECK(position("\0"sv) == "0");
  CHECK(position("[") == "1");
  CHECK(position("{") == "1");
}

TEST_CASE("RepairJson limits depth and its result is as deep as simdjson allows", "[json_repair]") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + "1" + std::string(depth, ']');
  };
  const std::string deepest = nested(1023);
  CHECK(Repair(deepest) == deepest);
  CHECK_FALSE(HasDuplicate(deepest));
  CHECK(IsValidForSqlite(deepest));
  CHECK_FALSE(RepairJson(nested(1024)));
  CHECK_FALSE(RepairJson(std::string(10'000'000, '[')));
  CHECK_FALSE(RepairJson(std::string(10'000'000, '{')));
}

TEST_CASE("RepairJson takes linear time for hostile shapes", "[json_repair]") {
  // Each level repeats a member whose first copy must go; and an object with many equal names. With quadratic time the test would
  // run into ctest's limit.
  std::string deep = "1";
  for (int i = 0; i < 1000; ++i) deep = R"({"a":0,"a":)" + deep + "}";
  std::string wide = "[", equal = "{";
  for (int i = 0; i < 100; ++i) wide += (i ? "," : "") + deep;
  for (int i = 0; i < 1'000'000; ++i) equal += R"("\u0061":1,)";
  CHECK(RepairJson(wide + "]"));
  CHECK(Repair(equal + R"("a":2})") == R"({"a":2})");
}

TEST_CASE("HasDuplicateMembers looks into every object", "[json_repair]") {
  CHECK_FALSE(HasDuplicate(R"({"a": 1, "b": {"a": 1}, "c": [{"a": 1}, {"a": 1}]})"));
  CHECK(HasDuplicate(R"({"a": 1, "b": 2, "a": 3})"));
  CHECK(HasDuplicate(R"({"a": 1, "\u0061": 2})"));
  CHECK(HasDuplicate(R"({"b": [[{"x": {"c": 1, "c": 2}}]]})"));
  CHECK_FALSE(HasDuplicate("[]"));
  CHECK_FALSE(HasDuplicate("1"));
  std::string many = "{";
  for (int i = 0; i < 1000; ++i) many += fmt::format(R"("k{}": 1, )", i);
  CHECK_FALSE(HasDuplicate(many + R"("end": 0})"));
  CHECK(HasDuplicate(many + R"("k999": 0})"));
  CHECK(HasDuplicate(many + R"("k3": 0})"));
  for (int count = 1; count < 12; ++count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += fmt::format(R"("k{}": 1, )", i);
    CHECK_FALSE(HasDuplicate(text + R"("end": 0})"));
    CHECK(HasDuplicate(text + fmt::format(R"("k{}": 0}})", count - 1)));
  }
}

}  // namespace
}  // namespace tlparse
