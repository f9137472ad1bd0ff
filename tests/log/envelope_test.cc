#include "log/envelope.h"

#include <string>

#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

namespace {

// Parses with the padding that Parse asks for; the result lives as long as the object.
struct Parsed {
  explicit Parsed(std::string_view json) : text(json) {
    text.append(simdjson::SIMDJSON_PADDING, '\0');
    envelope = parser.Parse({text.data(), json.size()});
  }
  std::string text;
  EnvelopeParser parser;
  const Envelope* envelope;
};

}  // namespace

TEST_CASE("An envelope's ids, kind and payload hash are read", "[envelope]") {
  const Parsed parsed(
      R"({"artifact": {"name": "n", "encoding": "json"}, "rank": 3, "compiled_autograd_id": 1, "frame_id": 4,
          "frame_compile_id": 5, "attempt": 6, "has_payload": "76bb1822205fc52742565357a1027fec",
          "stack": []})");
  REQUIRE(parsed.envelope != nullptr);
  const Envelope& envelope = *parsed.envelope;
  CHECK(envelope.kind == "artifact");
  CHECK(envelope.name == "n");
  CHECK(envelope.rank == 3);
  CHECK(envelope.compiled_autograd_id == 1);
  CHECK(envelope.frame_id == 4);
  CHECK(envelope.frame_compile_id == 5);
  CHECK(envelope.attempt == 6);
  CHECK(envelope.has_stack);
  CHECK(envelope.names_payload);
  REQUIRE(envelope.payload_hash);
  CHECK(envelope.payload_hash->at(0) == 0x76);
  CHECK_FALSE(envelope.was_repaired);
}

TEST_CASE("An envelope of very many values is read without its large lists and objects",
          "[envelope]") {
  std::string ones = "1";
  for (int i = 0; i < 1'000'000; ++i) ones += ", 1";
  const std::string large = "[" + ones + "]";
  const Parsed beside(R"({"artifact": {"name": "n"}, "v": )" + large + R"(, "rank": 3})");
  REQUIRE(beside.envelope != nullptr);
  CHECK(beside.envelope->has_several_keys);  // without a table of record keys
  CHECK(beside.envelope->rank == 3);
  const Parsed within(R"({"a": {"x": {"y": )" + large + R"(}, "stack": [], "b": "c"}, "stack": )" +
                      large + R"(, "frame_id": 7})");
  REQUIRE(within.envelope != nullptr);
  CHECK(within.envelope->kind == "a");
  CHECK(within.envelope->has_stack);
  CHECK(within.envelope->has_metadata_stack);
  CHECK_FALSE(within.envelope->was_repaired);
  CHECK(within.envelope->frame_id == 7);
  CHECK(within.envelope->metadata.size() > 2'000'000);  // all of it
  CHECK(within.envelope->metadata.ends_with(R"("b":"c"})"));
  const Parsed repaired(R"({"a": {"x": NaN, "v": )" + large + "}}");
  REQUIRE(repaired.envelope != nullptr);
  CHECK(repaired.envelope->was_repaired);
  CHECK(Parsed(R"({"a": [)" + ones + "}").envelope == nullptr);
  CHECK(Parsed(R"({"a": {"v": )" + large + R"(}, "v": tru})").envelope == nullptr);
  std::string members = R"({"a": {"x": 1)";
  for (int i = 0; i < 600'000; ++i) members += ", \"m" + std::to_string(i) + "\": 1";
  CHECK(Parsed(members + "}}").envelope == nullptr);
}

TEST_CASE("What is no JSON object is no envelope", "[envelope]") {
  for (const char* json : {"", "{", "[]", "1", "{\"a\": 1", "{\"a\": 1}}", "{\"a\" 1}", "{} x"}) {
    CAPTURE(json);
    CHECK(Parsed(json).envelope == nullptr);
  }
}

TEST_CASE("Two candidates for the record key leave the kind open and say so", "[envelope]") {
  const Parsed parsed(R"({"str": [], "link": {}, "rank": 0})");
  REQUIRE(parsed.envelope != nullptr);
  CHECK(parsed.envelope->kind.empty());
  CHECK(parsed.envelope->has_several_keys);
  const Parsed none(R"({"rank": 0})");
  REQUIRE(none.envelope != nullptr);
  CHECK(none.envelope->kind.empty());
  CHECK_FALSE(none.envelope->has_several_keys);
}

TEST_CASE("A member of a wrong type is empty and named", "[envelope]") {
  const Parsed parsed(R"({"str": [], "rank": "zero", "frame_id": 1})");
  REQUIRE(parsed.envelope != nullptr);
  CHECK_FALSE(parsed.envelope->rank);
  CHECK(parsed.envelope->frame_id == 1);
  CHECK(parsed.envelope->bad_member == "rank");
}

TEST_CASE("NaN, lone surrogates and large integers do not cost the record", "[envelope]") {
  for (const char* json :
       {R"({"x": {"v": NaN}, "rank": 1})", R"({"x": {"v": "\ud800"}, "rank": 1})",
        R"({"x": {"v": 123456789012345678901234567890}, "rank": 1})"}) {
    CAPTURE(json);
    const Parsed parsed(json);
    REQUIRE(parsed.envelope != nullptr);
    CHECK(parsed.envelope->kind == "x");
    CHECK(parsed.envelope->rank == 1);
  }
}

TEST_CASE("A parser that failed reads the next envelope", "[envelope]") {
  EnvelopeParser parser;
  const std::string bad = std::string("{\"x\": ") + std::string(simdjson::SIMDJSON_PADDING, '\0');
  CHECK(parser.Parse({bad.data(), 6}) == nullptr);
  const std::string good =
      std::string("{\"x\": 1}") + std::string(simdjson::SIMDJSON_PADDING, '\0');
  const Envelope* envelope = parser.Parse({good.data(), 8});
  REQUIRE(envelope != nullptr);
  CHECK(envelope->kind == "x");
  CHECK(envelope->bad_member.empty());
}

TEST_CASE("A record key that no JSON path can name brings its metadata along", "[envelope]") {
  CHECK(Parsed(R"({"dynamo_start": {"x": 1}})").envelope->metadata.empty());
  CHECK(Parsed(R"({"a b.c[0]": {"x": 1}})").envelope->metadata.empty());
  const Parsed nul(R"({"a\u0000b": {"x": 1.50}, "rank": 0})");
  CHECK(nul.envelope->kind == std::string_view("a\0b", 3));
  CHECK(nul.envelope->metadata == R"({"x": 1.50})");
  CHECK(Parsed(R"({"rank": 0, "a\"b": [1, "\\"] })").envelope->metadata == R"([1, "\\"])");
  CHECK(Parsed(R"({"\u00e9": 5})").envelope->metadata == "5");
  CHECK_FALSE(Parsed(R"({"\u00e9": 5})").envelope->was_repaired);
  CHECK(Parsed(R"({"\ud800": NaN})").envelope->metadata == "null");
}

TEST_CASE("A number that no job has as a rank is no rank", "[envelope]") {
  for (const char* number : {"3000000000", "9223372036854775807", "1048576", "-1"}) {
    CAPTURE(number);
    const Parsed parsed(std::string(R"({"str": ["a", 1], "rank": )") + number + "}");
    REQUIRE(parsed.envelope != nullptr);
    CHECK_FALSE(parsed.envelope->rank);
    CHECK(parsed.envelope->bad_rank == std::stoll(number));
    CHECK(parsed.envelope->bad_member.empty());
  }
  const Parsed largest(R"({"str": ["a", 1], "rank": 1048575})");
  CHECK(largest.envelope->rank == 1048575);
  CHECK_FALSE(largest.envelope->bad_rank);
}
