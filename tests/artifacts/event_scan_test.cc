#include "artifacts/common/event_scan.h"

#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

TEST_CASE("ScanEvent takes the members that every event has", "[event_scan]") {
  const auto event = ScanEvent(
      R"({"name": "inductor_compile", "ts": 1795249801003000.25, "args": {"a": [{"name": "n"}, -1.5e3],
          "compile_id": "0/0", "n": null}, "ph": "B", "cat": "dynamo_timed", "tid": 7, "pid": {"ts": 0}})");
  REQUIRE(event);
  CHECK(event->name == "inductor_compile");
  CHECK(event->ts_us == 1795249801003000.25);
  CHECK(event->phase == 'B');
  CHECK(event->thread == 7);
  CHECK(event->compile_label == "0/0");
}

TEST_CASE("ScanEvent takes no label from elsewhere", "[event_scan]") {
  for (const char* args :
       {R"({"compile_id": null})", R"({"compile_id": ["0/0"]})", R"({"x": {"compile_id": "0/0"}})",
        R"({}, "compile_id": "0/0")", R"({}, "x": {"compile_id": "0/0"})"}) {
    CAPTURE(args);
    const auto event = ScanEvent(R"({"name": "a", "ts": -1, "ph": "E", "tid": "x", "args": )" +
                                 std::string(args) + "}");
    REQUIRE(event);
    CHECK(event->ts_us == -1);
    CHECK(event->thread == 0);
    CHECK(event->compile_label.empty());
  }
}

TEST_CASE("ScanEvent leaves odd events to the parser", "[event_scan]") {
  const std::string event = R"("name": "a", "ts": 1, "ph": "B")";
  CHECK(ScanEvent("{" + event + "}"));
  for (const char* odd :
       {R"({"name": "a", "ts": 1})", R"({"name": "a\u0041", "ts": 1, "ph": "B"})",
        R"({"name": 1, "ts": 1, "ph": "B"})", R"({"name": "a", "ts": 1e3, "ph": "B"})",
        R"({"name": "a", "ts": 1234567890123456789, "ph": "B"})",
        R"({"name": "a", "ts": "1", "ph": "B"})", R"({"name": "a", "ts": 1, "ph": "BE"})",
        R"([{"name": "a", "ts": 1, "ph": "B"}])", ""}) {
    CAPTURE(odd);
    CHECK_FALSE(ScanEvent(odd));
  }
  for (const char* more :
       {R"("name": "b")", R"("ts": 2)", R"("n\u0061me": "b")", R"("x": NaN)", R"("x": 01)",
        R"("x": "\n")", R"("args": [])", R"("args": {}, "args": {})", R"("args": 1)",
        R"("args": {"compile_id": "0\/0"})", R"("tid": 1.5, "tid": 2)", R"("x": )"}) {
    CAPTURE(more);
    CHECK_FALSE(ScanEvent("{" + event + ", " + more + "}"));
  }
  CHECK_FALSE(ScanEvent("{" + event + "} x"));
}
