#include "inputs/kineto/event_scanner.h"

#include <algorithm>
#include <cstring>

#include "tests/catch2.h"

using namespace tlparse;  // NOLINT: a test

namespace {

using Kind = EventScanner::Item::Kind;

// Everything the scanner says about `text`, which comes `step` bytes at a time: "member key=value",
// "event value", "cut", "damaged", "large".
std::vector<std::string> Scan(std::string_view text, std::size_t step) {
  EventScanner scanner([&](char* buffer, std::size_t capacity) -> Result<std::size_t> {
    const std::size_t count = std::min({step, capacity, text.size()});
    std::memcpy(buffer, text.data(), count);
    text.remove_prefix(count);
    return count;
  });
  std::vector<std::string> items;
  while (true) {
    const auto item = scanner.Next();
    REQUIRE(item);
    const std::string value(item->value);
    switch (item->kind) {
      case Kind::kEnd:
        return items;
      case Kind::kMember:
        items.push_back("member " + std::string(item->key) + "=" + value);
        break;
      case Kind::kEvent:
        items.push_back("event " + value);
        break;
      case Kind::kCut:
        items.emplace_back("cut");
        break;
      case Kind::kDamaged:
        items.push_back("damaged " + value);
        break;
      case Kind::kTooLarge:
        items.emplace_back("large");
        break;
    }
  }
}

std::vector<std::string> Scan(std::string_view text) {
  const std::vector<std::string> whole = Scan(text, text.size() + 1);
  for (const std::size_t step : {1U, 2U, 7U}) CHECK(Scan(text, step) == whole);
  return whole;
}

using Items = std::vector<std::string>;

}  // namespace

TEST_CASE("Damage is left behind at the next event", "[event_scanner]") {
  const auto scan = [](std::string_view text, std::size_t step) {
    EventScanner scanner([&](char* buffer, std::size_t capacity) -> Result<std::size_t> {
      const std::size_t count = std::min({step, capacity, text.size()});
      std::memcpy(buffer, text.data(), count);
      text.remove_prefix(count);
      return count;
    });
    Items items;
    while (true) {
      const auto item = scanner.Next();
      REQUIRE(item);
      if (item->kind == Kind::kEnd) return items;
      const bool is_event = item->kind == Kind::kEvent && item->value.ends_with("1}");
      if (is_event || item->kind == Kind::kMember) {
        items.emplace_back(item->value);
        continue;
      }
      const auto goes_on = scanner.Recover();
      REQUIRE(goes_on);
      items.push_back(*goes_on ? "damage" : "end");
    }
  };
  const std::string_view lost_quote =
      R"({"traceEvents": [{"ph": 1}, {"ph": "x, "a": 0}, {"ph": 2, "b": 1}], "c": 4})";
  const std::string_view lost_bracket =
      R"({"traceEvents": [{"ph": 1}, {"ph": 5, "a": {"b": 0}, { "ph": 2, "b": 1}], "c": 4})";
  const std::string_view early_end =
      R"({"traceEvents": [{"ph": 1}, {"ph": 5} "a": 0}}, {"ph": 2, "b": 1}], "c": 4})";
  const std::string_view nothing_more = R"({"traceEvents": [{"ph": 1}, {"ph": "x, "a": 0}]})";
  for (const std::size_t step : {1U, 7U, 1000U}) {
    CHECK(scan(lost_quote, step) == Items{R"({"ph": 1})", "damage", R"({"ph": 2, "b": 1})", "4"});
    CHECK(scan(lost_bracket, step).back() == "4");
    CHECK(scan(lost_bracket, step)[2].ends_with(R"("b": 1})"));
    CHECK(scan(early_end, step).back() == "4");
    CHECK(scan(nothing_more, step) == Items{R"({"ph": 1})", "end"});
  }
}

TEST_CASE("Members before and after traceEvents, events one by one", "[event_scanner]") {
  CHECK(
      Scan(
          R"({"a": 1, "traceEvents": [ {"x": {"y": [1, "]}"]}} , {} ], "b": "c\"}", "d": [1]} )") ==
      Items{"member a=1", R"(event {"x": {"y": [1, "]}"]}})", "event {}", R"(member b="c\"}")",
            "member d=[1]"});
  CHECK(Scan(R"({"traceEvents":[],"n":12})") == Items{"member n=12"});
}

TEST_CASE("A bare list of events", "[event_scanner]") {
  CHECK(Scan(R"([{"ph":"X"},3])") == Items{R"(event {"ph":"X"})", "event 3"});
}

TEST_CASE("traceEvents that is no list is a member", "[event_scanner]") {
  CHECK(Scan(R"({"traceEvents": {"a": []}})") == Items{R"(member traceEvents={"a": []})"});
}

TEST_CASE("Backslashes before a quote", "[event_scanner]") {
  CHECK(Scan(R"([{"a":"\\"},{"b":"\\\""},{"c":"\\\\"}])") ==
        Items{R"(event {"a":"\\"})", R"(event {"b":"\\\""})", R"(event {"c":"\\\\"})"});
}

TEST_CASE("A file that ends early is cut, wherever it ends", "[event_scanner]") {
  const std::string_view text = R"({"a": 1, "traceEvents": [{"x": "y"}, {"z": 2}], "b": 3})";
  for (std::size_t size = 1; size < text.size(); ++size) {
    const Items items = Scan(text.substr(0, size));
    REQUIRE(!items.empty());
    CHECK(items.back() == "cut");
  }
  CHECK(Scan(text.substr(0, 38)) == Items{"member a=1", R"(event {"x": "y"})", "cut"});
}

TEST_CASE("What cannot be JSON ends the file", "[event_scanner]") {
  CHECK(Scan("no json") == Items{"damaged no json"});
  CHECK(Scan("{no: 1}") == Items{"damaged no: 1}"});
  CHECK(Scan(R"({"a" 1})") == Items{"damaged 1}"});
  CHECK(Scan(R"([{}, }])") == Items{"event {}", "damaged }]"});
  CHECK(Scan("").empty());
  CHECK(Scan("  ").empty());
}

TEST_CASE("A value beyond the limit is left out and what follows is read", "[event_scanner]") {
  // One that the buffer could hold, and one that it could not.
  for (const std::size_t more : {1U, 40U << 20}) {
    const std::string large(EventScanner::kMostBytes + more, 'x');
    const Items items = Scan(R"([{"a":")" + large + R"("},{"b":1}])", 1 << 20);
    REQUIRE(items.size() == 2);
    const bool is_left_out = items[0] == "large";  // not in CHECK, which would print the event
    CHECK(is_left_out);
    CHECK(items[1] == R"(event {"b":1})");
  }
}

TEST_CASE("Very deep nesting needs no stack", "[event_scanner]") {
  const std::string deep = std::string(1 << 20, '[') + std::string(1 << 20, ']');
  const bool is_whole = Scan("[" + deep + "]", 1 << 16) == Items{"event " + deep};
  CHECK(is_whole);
}
