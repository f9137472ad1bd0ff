#include "inputs/common/generated_code.h"
#include "inputs/kineto/event.h"
#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

namespace {

struct Parsed {
  explicit Parsed(std::string json) : text(std::move(json)) {
    const std::size_t size = text.size();
    text.resize(size + simdjson::SIMDJSON_PADDING);
    ok = parser.Parse(std::string_view(text).substr(0, size), event).has_value();
  }
  std::string text;
  KinetoEventParser parser;
  KinetoEvent event;
  bool ok = false;
};

}  // namespace

TEST_CASE("Microseconds become nanoseconds exactly", "[kineto_event]") {
  CHECK(ParseMicroseconds("4517761456977.238") == 4517761456977238);
  // Beyond 2^53 ns, where a double would be wrong.
  CHECK(ParseMicroseconds("1795374775259894.001") == 1795374775259894001);
  CHECK(ParseMicroseconds("0") == 0);
  CHECK(ParseMicroseconds("7") == 7000);
  CHECK(ParseMicroseconds("7.5") == 7500);
  CHECK(ParseMicroseconds("7.0005") == 7001);
  CHECK(ParseMicroseconds("7.0004999") == 7000);
  CHECK(ParseMicroseconds("-3.25") == -3250);
  CHECK(ParseMicroseconds("1.5e3") == 1500000);
  for (const char* bad : {"", "x", "1.x", "1x", "-", ".5", "99999999999999999999", "1e400", "9e15"})
    CHECK(ParseMicroseconds(bad) == std::nullopt);
}

TEST_CASE("An event's members in any order, numbers as text", "[kineto_event]") {
  const Parsed parsed(
      R"({"args": {"External id": 6, "grid": [16384, 1, 1], "device": "2", "Sequence number": 48,
          "unknown": {"deep": [1]}}, "dur": 77.074, "tid": -9223372036854775807, "pid": "Spans",
          "name": "a \"quoted\" \u00e9", "cat": "kernel", "ts": 3603029046460.717, "ph": "X"})");
  REQUIRE(parsed.ok);
  CHECK(parsed.event.phase == 'X');
  CHECK(parsed.event.category == "kernel");
  CHECK(parsed.event.name == "a \"quoted\" \xC3\xA9");
  CHECK(parsed.event.start_ns == 3603029046460717);
  CHECK(parsed.event.duration_ns == 77074);
  CHECK(parsed.event.pid == "Spans");
  CHECK(parsed.event.tid == "-9223372036854775807");
  CHECK(parsed.event.external_id == 6);
  CHECK(parsed.event.device == 2);
  CHECK(parsed.event.sequence_number == 48);
  CHECK(parsed.event.grid == "[16384, 1, 1]");
}

TEST_CASE("Half a pair of surrogates loses no event", "[kineto_event]") {
  const Parsed parsed(
      R"({"ph": "X", "cat": "kernel", "name": "k\ud800_0 \ud83d\ude00", "ts": 3603029046460.717, "dur": 1.5,
          "args": {"odd \udc00": "\uD801", "External id": 6, "grid": [2, 1, 1]}})");
  REQUIRE(parsed.ok);
  CHECK(parsed.event.name == "k\xEF\xBF\xBD_0 \xF0\x9F\x98\x80");
  CHECK(parsed.event.start_ns == 3603029046460717);
  CHECK(parsed.event.external_id == 6);
}

TEST_CASE("Lists of a file that was printed anew are on one line", "[kineto_event]") {
  const Parsed parsed(
      "{\"ph\": \"X\", \"args\": {\"grid\": [\n  56,\n\t1,\n  1\n ], \"Input Dims\": [\n "
      "[2, 3], [\"a, \\\" b\", []]\n]}}");
  REQUIRE(parsed.ok);
  CHECK(parsed.event.grid == "[56, 1, 1]");
  CHECK(parsed.event.shapes == "[[2, 3], [\"a, \\\" b\", []]]");
}

TEST_CASE("Members of a wrong type are as if they were not there", "[kineto_event]") {
  const Parsed parsed(
      R"({"ph": 3, "ts": "soon", "dur": null, "name": {"a": 1}, "args": [1], "pid": true})");
  REQUIRE(parsed.ok);
  CHECK(parsed.event.start_ns == std::nullopt);
  CHECK(parsed.event.duration_ns == std::nullopt);
  CHECK(parsed.event.name.data() == nullptr);
}

TEST_CASE("Bytes that are no UTF-8 are replaced, not refused", "[kineto_event]") {
  const Parsed parsed("{\"ph\": \"X\", \"ts\": 1, \"name\": \"a\xFF\"}");
  REQUIRE(parsed.ok);
  CHECK(parsed.event.name == "a\xEF\xBF\xBD");
}

TEST_CASE("What is no object is refused", "[kineto_event]") {
  CHECK(!Parsed("3").ok);
  CHECK(!Parsed("[]").ok);
  CHECK(!Parsed(R"({"ph": "X" "ts": 1})").ok);
}

TEST_CASE("Files of Inductor's cache", "[generated_code]") {
  const std::string hash = "c" + std::string("jn") + std::string(49, 'a');
  CHECK(IsCachePath("/tmp/x/jn/" + hash + ".py"));
  CHECK(IsCachePath("jn/" + hash + ".wrapper.cpp"));
  CHECK(!IsCachePath("/tmp/x/ab/" + hash + ".py"));
  CHECK(!IsCachePath("/tmp/x/jn/" + hash));
  CHECK(!IsCachePath("/home/u/train.py"));
  CHECK(!IsCachePath(""));
}

TEST_CASE("CPU kernels by their slices' names", "[generated_code]") {
  CHECK(CpuKernelName("graph_0_cpp_fused_add_0") == "cpp_fused_add_0");
  CHECK(CpuKernelName("graph_12_cpp_fused_add_0") == "cpp_fused_add_0");
  CHECK(CpuKernelName("cpp_fused_add_0") == "cpp_fused_add_0");
  CHECK(CpuKernelName("graph_1_inductor_wrapper_call") == std::nullopt);
  CHECK(IsWrapperCall("graph_1_inductor_wrapper_call"));
  for (const char* other :
       {"aten::addmm", "graph_", "graph_x_y", "cpp::f", "triton_poi_fused_0", "", "graph_1_"})
    CHECK(CpuKernelName(other) == std::nullopt);
}
