#include "libtrace/json.h"

#include <limits>
#include <map>
#include <vector>

#include "tests/catch2.h"

namespace libtrace {
namespace {

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(text, out);
  return out;
}

TEST_CASE("AppendJsonString writes ASCII only", "[json]") {
  CHECK(Quoted("a\"\\\n\r\t\b\f\x01\x7f/") == R"("a\"\\\n\r\t\b\f\u0001\u007f/")");
  CHECK(Quoted("h\xC3\xA9\xE2\x82\xAC") == R"("h\u00e9\u20ac")");
  CHECK(Quoted("\xF0\x9F\x98\x80") == R"("\ud83d\ude00")");
  CHECK(Quoted(std::string("\0", 1)) == R"("\u0000")");
}

TEST_CASE("AppendJsonString sees what needs an escape wherever it stands", "[json]") {
  for (size_t size = 1; size <= 20; ++size) {
    for (size_t place = 0; place < size; ++place) {
      for (int c = 0; c < 0x80; ++c) {
        std::string text(size, 'x');
        text[place] = static_cast<char>(c);
        const bool is_plain = c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
        if ((Quoted(text) == '"' + text + '"') != is_plain) FAIL(size << " " << place << " " << c);
        text[place] = static_cast<char>(c | 0x80);
        if (Quoted(text) == '"' + text + '"') FAIL(size << " " << place << " " << (c | 0x80));
      }
    }
  }
}

TEST_CASE("AppendJsonString replaces what is not UTF-8", "[json]") {
  CHECK(Quoted("a\xFFz") == R"("a\ufffdz")");
  CHECK(Quoted("\xC3") == R"("\ufffd")");
  CHECK(Quoted("\xE2\x82") == R"("\ufffd")");                  // one maximal piece, one replacement
  CHECK(Quoted("\xC0\x80") == R"("\ufffd\ufffd")");            // overlong
  CHECK(Quoted("\xED\xA0\x80") == R"("\ufffd\ufffd\ufffd")");  // surrogate
  CHECK(Quoted("\xF4\x90\x80\x80") == R"("\ufffd\ufffd\ufffd\ufffd")");
}

TEST_CASE("JsonWriter has the separators of each style", "[json]") {
  const auto write = [](JsonStyle style) {
    std::string out;
    JsonWriter json(out, style);
    json.BeginObject().Field("a", std::vector<int>{1, 2}).Field("b", true).Key("c").BeginObject();
    json.EndObject().EndObject();
    return out;
  };
  CHECK(write(JsonStyle::kOneLine) == R"({"a": [1, 2], "b": true, "c": {}})");
  CHECK(write(JsonStyle::kLinePerToken) == "{\n\"a\": [\n1,\n2\n],\n\"b\": true,\n\"c\": {}\n}");
  std::string list;
  JsonWriter(list, JsonStyle::kLinePerElement).Value(std::vector<std::vector<int>>{{1, 2}, {}});
  CHECK(list == "[\n[1, 2],\n[]\n]");
  std::string empty;
  JsonWriter(empty, JsonStyle::kLinePerElement).Value(std::vector<int>());
  CHECK(empty == "[\n\n]");  // as PyTorch's empty list, MD5 18b50eaa01e860d2c78d96b8478bfd75
}

TEST_CASE("JsonWriter writes numbers that read back", "[json]") {
  const auto number = [](auto value) {
    std::string out;
    JsonWriter(out).Value(value);
    return out;
  };
  CHECK(number(std::numeric_limits<int64_t>::min()) == "-9223372036854775808");
  CHECK(number(std::numeric_limits<uint64_t>::max()) == "18446744073709551615");
  CHECK(number(1795250719930027.2) == "1795250719930027.2");
  CHECK(number(5.0) == "5.0");
  CHECK(number(0.1) == "0.1");
  CHECK(number(1e300) == "1e+300");
  CHECK(number(std::numeric_limits<double>::infinity()) == "null");
  CHECK(number(std::numeric_limits<double>::quiet_NaN()) == "null");
  CHECK(number(std::optional<int>()) == "null");
}

TEST_CASE("JsonWriter stays well formed whatever is called", "[json]") {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Int(1).Key("a").Key("b").BeginArray().EndObject();
  json.Finish();
  CHECK(out == R"({"": 1, "a": null, "b": []})");
  std::string deep;
  JsonWriter nested(deep);
  for (int i = 0; i < 200; ++i) nested.BeginArray();
  nested.Int(1);
  nested.Finish();
  std::string again;
  CHECK(AppendNormalizedJson(deep, JsonStyle::kOneLine, again));
}

TEST_CASE("Maps become objects, pairs too", "[json]") {
  std::string out;
  JsonWriter json(out);
  json.BeginArray();
  json.Value(std::map<std::string, std::vector<std::string>>{{"k", {"v"}}});
  json.Value(std::vector<std::pair<std::string, int>>{{"x", 1}, {"y", 2}});
  json.EndArray();
  CHECK(out == R"([{"k": ["v"]}, {"x": 1, "y": 2}])");
}

TEST_CASE("AppendNormalizedJson respells JSON and refuses the rest", "[json]") {
  const auto respell = [](std::string_view json) -> std::string {
    std::string out;
    return AppendNormalizedJson(json, JsonStyle::kOneLine, out) ? out : "refused";
  };
  CHECK(respell(" {\"a\":[1,2.50,-0,1e5],\n\"b\":\"\xC3\xA9\"} ") ==
        R"({"a": [1, 2.50, -0, 1e5], "b": "\u00e9"})");
  CHECK(respell(R"("\ud83d\ude00 \u00e9 \/ \ud800")") == R"("\ud83d\ude00 \u00e9 / \ufffd")");
  CHECK(respell("[NaN, Infinity, -Infinity]") == "[null, null, null]");
  CHECK(respell("123456789012345678901234567890") == "123456789012345678901234567890");
  for (const char* bad :
       {"", "{", "[1,]", "{\"a\":1,}", "tru", "01", "1.", "1e", "+1", "'a'", "\"a", "\"\n\"",
        "\"\\x\"", "\"\\ud800\\u12\"", "[1] 2", "{1:2}", "nul", "--1"}) {
    INFO(bad);
    CHECK(respell(bad) == "refused");
  }
  CHECK(respell(std::string(1000, '[')) == "refused");
}

}  // namespace
}  // namespace libtrace
