#include "report/tree/json_format.h"

#include <initializer_list>

#include "report/tree/html.h"
#include "report/tree/lenient_json.h"
#include "tests/catch2.h"
#include "tests/report/report_fixture.h"

namespace tlparse {
namespace {

std::string Format(std::string_view json, JsonLayout layout) {
  std::string out;
  return AppendJson(json, layout, out) ? out : "not JSON";
}

TEST_CASE("JSON layout: pretty") {
  CHECK(Format(R"({"a":[1,2.50e3,{"b":null}],"c":{},"d":[ ],"a":"x\"\u00e9"})",
               JsonLayout::kPretty) ==
        "{\n  \"a\": [\n    1,\n    2.50e3,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": {},\n"
        "  \"d\": [],\n  \"a\": \"x\\\"\\u00e9\"\n}");
  CHECK(Format(" 7 ", JsonLayout::kPretty) == "7");
}

TEST_CASE("JSON layout: the blanks of the text do not matter") {
  for (const std::string_view json :
       {R"({"a":1,"b":[2,{"c":"d e"}]})", R"({"a": 1, "b": [2, {"c": "d e"}]})",
        " { \"a\" : 1 ,\n\"b\":\t[ 2 , { \"c\":\n \"d e\" } ] } "}) {
    CAPTURE(json);
    CHECK(Format(json, JsonLayout::kCompact) == R"({"a":1,"b":[2,{"c":"d e"}]})");
    CHECK(Format(json, JsonLayout::kPretty) ==
          "{\n  \"a\": 1,\n  \"b\": [\n    2,\n    {\n      \"c\": \"d e\"\n    }\n  ]\n}");
  }
}

TEST_CASE("JSON layout: compact keeps numbers and strings as they are") {
  CHECK(Format("[\n1,\n 123456789012345678901234567890 ,\r\n\t\"a b\\n\"\n]",
               JsonLayout::kCompact) == "[1,123456789012345678901234567890,\"a b\\n\"]");
}

TEST_CASE("JSON layout: what is not JSON is refused") {
  for (const std::string_view bad :
       {"",      " ",          "{",   "[1,]",      "[1 2]",   "{\"a\"}",     "{\"a\":}",
        "{a:1}", "{\"a\":1,}", "nul", "truefalse", "NaN",     "[Infinity]",  "01",
        "1.",    "-",          "1e",  "\"a",       "\"\\x\"", "\"\\u12g4\"", "\"a\nb\"",
        "[1]x",  "]",          "[}",  "'a'"}) {
    CAPTURE(bad);
    CHECK(Format(bad, JsonLayout::kPretty) == "not JSON");
    CHECK(Format(bad, JsonLayout::kCompact) == "not JSON");
  }
}

TEST_CASE("JSON layout: quotes and backslashes at every offset of a long string") {
  for (std::size_t i = 0; i < 40; ++i) {
    std::string json = "\"" + std::string(40, 'x') + "\"";
    json.replace(1 + i, 1, "\\\"");
    CHECK(Format(json, JsonLayout::kCompact) == json);
    json[1 + i] = '\x1f';
    CHECK(Format(json, JsonLayout::kCompact) == "not JSON");
  }
}

TEST_CASE("JSON layout: deep nesting neither overflows nor explodes") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  // The innermost pair is an empty list and takes no level.
  CHECK(Format(nested(128), JsonLayout::kCompact) == nested(128));
  CHECK(Format(nested(129), JsonLayout::kCompact) == "not JSON");
  CHECK(Format(nested(1'000'000), JsonLayout::kPretty) == "not JSON");
  std::string wide = std::string(120, '[') + "0";
  for (int i = 0; i < 10'000; ++i) wide += ",[0]";
  wide += std::string(120, ']');
  CHECK(Format(wide, JsonLayout::kPretty).size() < 4 * wide.size());
  CHECK(Format(Format(wide, JsonLayout::kPretty), JsonLayout::kCompact) == wide);
}

TEST_CASE("lenient JSON: what logs hold beyond strict JSON") {
  LenientParser parser;
  REQUIRE(parser.Parse(
      R"({"a": NaN, "n": 123456789012345678901234567890, "s": "1234567890123456789012", "l": "\ud800"})"));
  std::string_view text;
  REQUIRE(parser.root()["n"].get(text) == simdjson::SUCCESS);
  CHECK(text == "123456789012345678901234567890");
  CHECK(parser.root()["a"].is_null());
  CHECK(parser.strict_text().find(R"("n":123456789012345678901234567890)") != std::string::npos);
  CHECK_FALSE(parser.Parse("{"));
  CHECK_FALSE(parser.Parse(""));
}

TEST_CASE("JSON strings of any bytes") {
  CHECK(JsonString(std::string_view("a\"\\\n\x01", 5)) == "\"a\\\"\\\\\\n\\u0001\"");
  CHECK(JsonString("\xFF") == "\"\xEF\xBF\xBD\"");
}

TEST_CASE("HTML escapes at every offset of short and long texts") {
  for (const std::size_t size : std::initializer_list<std::size_t>{1, 15, 16, 17, 40, 9000}) {
    for (std::size_t i = 0; i < size; i += (size > 40 ? 97 : 1)) {
      std::string text(size, 'x');
      text[i] = '<';
      CHECK(Html(text) == text.substr(0, i) + "&lt;" + text.substr(i + 1));
    }
    std::string quotes;
    for (std::size_t i = 0; i < size; ++i) quotes += "&quot;";
    CHECK(Html(std::string(size, '"')) == quotes);
  }
}

TEST_CASE("HTML between tags keeps quotes; lines are numbered from 1") {
  const TempDirectory directory;
  auto output = CreateOutputDirectory(directory.path() + "/out", false);
  REQUIRE(output);
  FileWriter out;
  REQUIRE(out.Open(*output, "lines.html"));
  AppendNumberedLines("a < \"b\" & 'c'\n\nd>", out);
  REQUIRE(out.Close());
  CHECK(ReadFile(directory.path() + "/out/lines.html") ==
        "<pre class=\"code\"><span id=L1>a &lt; \"b\" &amp; 'c'</span><span id=L2></span>"
        "<span id=L3>d&gt;</span></pre>\n");
}

TEST_CASE("HTML escapes") {
  CHECK(Html("<a href=\"x\">'&'</a>") == "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  CHECK(Html(std::string_view("a\0b", 3)) ==
        "a\xEF\xBF\xBD"
        "b");
  CHECK(Link("a b/<c>", "<c>") == "<a href=\"a%20b/%3Cc%3E\">&lt;c&gt;</a>");
}

}  // namespace
}  // namespace tlparse
