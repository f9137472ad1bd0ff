#include "log/damaged_header.h"

#include "tests/catch2.h"
#include "tests/log/read_log.h"

using namespace tlparse;  // NOLINT: a test

namespace {

bool IsKey(std::string_view key) {
  return key == "dynamo_start" || key == "str" || key == "export";
}

const std::string kStart =
    Header("\"dynamo_start\": {\"stack\": []}, \"frame_id\": 0, \"frame_compile_id\": 0");

}  // namespace

TEST_CASE("Any other character in front of the JSON makes a damaged header, or none is needed",
          "[damaged_header]") {
  const std::size_t json = kStart.find('{');
  for (std::size_t at = 0; at <= json; ++at) {
    for (const char other : {'z', 'Z', '_', '\x80', '\0', '7', '"', '['}) {
      std::string line = kStart;
      line[at] = other;
      CAPTURE(line);
      CHECK((ParseGlogPrefix(line) || IsDamagedHeader(line, &IsKey)));
    }
    // A byte more, a byte less.
    std::string longer = kStart, shorter = kStart;
    longer.insert(at, 1, '\0');
    shorter.erase(at, 1);
    CAPTURE(longer, shorter);
    CHECK((ParseGlogPrefix(longer) || IsDamagedHeader(longer, &IsKey)));
    CHECK((ParseGlogPrefix(shorter) || IsDamagedHeader(shorter, &IsKey)));
  }
}

TEST_CASE("Other output is no damaged header", "[damaged_header]") {
  for (const std::string_view line :
       {"", "starting job 17", "{\"dynamo_start\": 1}", "WARNING: no \"str\": in x",
        "[rank0]:I1121 08:30:01.200000 7 torch/_dynamo/x.py:10] [0/0] [__guards] free text",
        "V1121 08:30:02.000000 7 torch/_dynamo/x.py:10] [0/0] [__graph_code] {\"str\": 1}",
        "V1121 08:30:02.000000 7 torch/_dynamo/x.py:10] [__config] {\"str\": 1}",
        "V1121 08:30:02.000000 7 torch/_dynamo/x.py:10] [!1/0/0_2] {\"export\": {}}",
        "I1121 08:30:02.000000 7 train.py:10] step 3: {\"loss\": 0.5}",
        "V1121 08:30:02.000000 7 torch/_dynamo/x.py:10] text"}) {
    CAPTURE(line);
    CHECK_FALSE(IsDamagedHeader(line, &IsKey));
  }
}

TEST_CASE("A damaged header takes its payload lines with it", "[damaged_header]") {
  std::string damaged = RecordText("its\npayload");
  damaged.replace(damaged.find("] {"), 3, "] z");
  const std::string open = Header(HasPayload("one\ntwo")) + "\n\tone\n";
  for (const std::size_t window : {std::size_t{1}, RecordReader::kWindowBytes}) {
    Load load;
    const ReadLog log = load.Read(open + damaged + RecordText("next"), window);
    CAPTURE(window);
    REQUIRE(log.records.size() == 2);
    CHECK(log.records[0].payload == "one");
    CHECK(log.records[1].payload == "next");
    REQUIRE(log.problems.size() == 2);
    const bool is_first = log.problems[0].code == ImportCode::kBrokenHeader;
    const ReadProblem& lost = log.problems[is_first ? 0 : 1];
    CHECK(lost.code == ImportCode::kBrokenHeader);
    CHECK(lost.line == 3);
    CHECK(lost.line_count == 3);
    CHECK(lost.text + "\n" == damaged);
    CHECK(log.problems[is_first ? 1 : 0].code == ImportCode::kPayloadMismatch);
  }
}

TEST_CASE("Both halves of a header that a line feed divides are one loss", "[damaged_header]") {
  std::string damaged = RecordText("its\npayload");
  damaged[damaged.find("has_payload")] = '\n';
  Load load;
  const ReadLog log = load.Read(RecordText("before") + damaged + RecordText("next"));
  REQUIRE(log.records.size() == 2);
  REQUIRE(log.problems.size() == 1);
  CHECK(log.problems[0].code == ImportCode::kBrokenHeader);
  CHECK(log.problems[0].line_count == 4);
  CHECK(log.problems[0].text + "\n" == damaged);
}

TEST_CASE("A log that ends inside the prefix of a header says so", "[damaged_header]") {
  const std::string header = kStart.substr(0, kStart.find("] {"));
  for (std::size_t size = 5; size <= header.size(); ++size) {
    const std::string text = RecordText("before") + header.substr(0, size);
    CAPTURE(text);
    const ReadLog cut = Load().Read(text);
    REQUIRE(cut.problems.size() == 1);
    CHECK(cut.problems[0].code == ImportCode::kBrokenHeader);
    const ReadLog foreign = Load().Read(text + "\n" + RecordText("next"));
    REQUIRE(foreign.problems.size() == 1);
    CHECK(foreign.problems[0].code == ImportCode::kForeignLine);
  }
}

TEST_CASE("Names that differ in one character", "[damaged_header]") {
  CHECK(DiffersInOneCharacter("dynamo_start", "dynamo_stert"));
  CHECK_FALSE(DiffersInOneCharacter("dynamo_start", "dynamo_start"));
  CHECK_FALSE(DiffersInOneCharacter("dynamo_start", "dynamo_starts"));
  CHECK_FALSE(DiffersInOneCharacter("dynamo_start", "dinamo_stert"));
  CHECK_FALSE(DiffersInOneCharacter("graph_1", "graph_2"));
}
