#include "log/record_reader.h"

#include "tests/catch2.h"
#include "tests/log/read_log.h"

using namespace tlparse;  // NOLINT: a test

namespace {
const std::string kStr = Header("\"str\": [\"a.py\", 0]") + "\n";
}

TEST_CASE("A record larger than the window stays whole", "[record_reader]") {
  std::string payload;
  for (int line = 0; payload.size() < 5'000'000; ++line)
    payload += "line " + std::to_string(line) + "\n";
  Load load;
  const ReadLog log = load.Read(kStr + RecordText(payload) + kStr);
  REQUIRE(log.records.size() == 3);
  CHECK(log.problems.empty());
  CHECK(log.records[1].state == PayloadState::kOk);
  CHECK(log.records[1].line == 2);
  CHECK(log.records[1].payload == payload);
  CHECK(log.records[2].byte_offset ==
        static_cast<std::int64_t>(kStr.size() + RecordText(payload).size()));
}

TEST_CASE("A record that ends exactly at the window's border is not cut or joined",
          "[record_reader]") {
  const std::string first = RecordText("one\ntwo");
  const std::string text = first + RecordText("three") + kStr;
  for (std::size_t window = 1; window <= text.size() + 1; ++window) {
    Load load;
    const ReadLog log = load.Read(text, window);
    CAPTURE(window);
    REQUIRE(log.records.size() == 3);
    CHECK(log.problems.empty());
    CHECK(log.records[0].payload == "one\ntwo");
    CHECK(log.records[1].payload == "three");
    CHECK(log.records[1].line == 4);
    CHECK(log.records[1].byte_offset == static_cast<std::int64_t>(first.size()));
    CHECK(log.records[2].line == 6);
    CHECK(log.line_count == 6);
  }
}

TEST_CASE("The border of a 2 MiB window may fall on any byte of a header", "[record_reader]") {
  // The payload ends so that the window ends 20 bytes before, …, 20 bytes behind the second
  // header's start.
  for (int shift = -20; shift <= 20; ++shift) {
    const std::string payload(RecordReader::kWindowBytes - Header(HasPayload("")).size() - 3 +
                                  static_cast<std::size_t>(20 + shift) - 20,
                              'x');
    Load load;
    const ReadLog log = load.Read(RecordText(payload) + RecordText("next"));
    CAPTURE(shift);
    REQUIRE(log.records.size() == 2);
    CHECK(log.problems.empty());
    CHECK(log.records[0].payload == payload);
    CHECK(log.records[1].payload == "next");
    CHECK(log.records[1].line == 3);
  }
}

TEST_CASE("Foreign lines inside a payload are a problem and the payload is whole",
          "[record_reader]") {
  const std::string header = Header(HasPayload("one\ntwo\nthree")) + "\n";
  Load load;
  const ReadLog log = load.Read(header + "\tone\nW1 something\n\ttwo\nelse\n\tthree\n" + kStr);
  REQUIRE(log.records.size() == 2);
  CHECK(log.records[0].state == PayloadState::kOk);
  CHECK(log.records[0].payload == "one\ntwo\nthree");
  REQUIRE(log.problems.size() == 2);
  CHECK(log.problems[0].code == ImportCode::kForeignLine);
  CHECK(log.problems[0].message == "lines that are not part of the trace");
  CHECK(log.problems[0].text == "W1 something\n");
  CHECK(log.problems[0].line == 3);
  CHECK(log.problems[0].byte_offset == static_cast<std::int64_t>(header.size()) + 5);
  CHECK(log.problems[1].text == "else\n");
  CHECK(log.problems[1].line == 5);
  CHECK(log.records[1].line == 7);
}

TEST_CASE("Foreign lines inside a payload may be cut by the border of a window",
          "[record_reader]") {
  const std::string text = Header(HasPayload("one\ntwo\nthree")) +
                           "\n\tone\nVery much like a header\n\ttwo\n[else\n\tthree\n" + kStr;
  for (std::size_t window = 1; window <= text.size() + 1; ++window) {
    Load load;
    const ReadLog log = load.Read(text, window);
    CAPTURE(window);
    REQUIRE(log.records.size() == 2);
    CHECK(log.records[0].payload == "one\ntwo\nthree");
    CHECK(log.problems.size() == 2);
  }
}

TEST_CASE("Torn lines behind a damaged header are not added to the record before it",
          "[record_reader]") {
  for (const std::string rank : {"", "[rank1]:"}) {
    const std::string broken = rank + "V1121 08:30:01.000000 7 a.py:1] {\"str\": [\n";
    const std::string torn = rank.empty() ? "noise\n\ttwo\n" : "[rank1]:\ttwo\n";
    const std::string text = Header(HasPayload("one\ntwo"), rank) + "\n\tone\n" + broken + torn;
    for (const std::size_t window : {std::size_t{1}, RecordReader::kWindowBytes}) {
      Load load;
      const ReadLog log = load.Read(text, window);
      CAPTURE(text, window);
      REQUIRE(log.records.size() == 1);
      CHECK(log.records[0].payload == "one");
      // The payload, the header with the line of TABs behind it; those with "[rank1]:" are their own.
      CHECK(log.problems.size() == (rank.empty() ? 2 : 3));
    }
  }
}

TEST_CASE("TAB lines behind a complete payload and a foreign line are not added to it",
          "[record_reader]") {
  Load load;
  const ReadLog log = load.Read(RecordText("one") + "foreign\n\tits own line\n");
  REQUIRE(log.records.size() == 1);
  CHECK(log.records[0].state == PayloadState::kOk);
  REQUIRE(log.problems.size() == 1);
  CHECK(log.problems[0].code == ImportCode::kForeignLine);
  CHECK(log.problems[0].line == 3);
  CHECK(log.problems[0].line_count == 2);
  CHECK(log.problems[0].text == "foreign\n\tits own line\n");
}

TEST_CASE("A record whose prefix names no possible time has that of its neighbour",
          "[record_reader]") {
  const auto at = [](std::string_view time) {
    return "V" + std::string(time) + " 7 a.py:1] {\"str\": [\"a\", 0]}\n";
  };
  const std::string text = at("1321 08:30:01.000000") + at("0230 08:30:01.000000") +
                           at("1121 08:30:02.000000") + at("1121 24:00:00.000000") +
                           at("1121 08:30:03.000000");
  Load load;
  const ReadLog log = load.Read(text);
  REQUIRE(log.records.size() == 5);
  const PrefixTimeUs second = *ParsePrefixTime("1121 08:30:02.000000");
  CHECK(log.records[0].time_us == second);
  CHECK(log.records[1].time_us == second);
  CHECK(log.records[2].time_us == second);
  CHECK(log.records[3].time_us == second);
  CHECK(log.records[4].time_us == second + 1'000'000);
  REQUIRE(log.problems.size() == 3);
  for (const ReadProblem& problem : log.problems)
    CHECK(problem.code == ImportCode::kImpossibleTime);
  CHECK(log.problems[2].line == 4);
  CHECK(log.problems[2].record == 3);
}

TEST_CASE("A record above the limit is cut and the rest of it kept as text", "[record_reader]") {
  const std::string payload(5000, 'x');
  const auto read = [](const std::string& text) {
    return Load().Read(text, 64, 1 << 20, "", 1000);
  };
  SECTION("in its payload, a long line") {
    const ReadLog log = read(kStr + RecordText(payload) + kStr);
    REQUIRE(log.records.size() == 3);
    CHECK(log.records[1].state == PayloadState::kMismatch);
    CHECK(log.records[1].payload.size() > 800);
    REQUIRE(log.problems.size() > 2);
    CHECK(log.problems[0].code == ImportCode::kLineTooLong);
    CHECK(log.problems[0].line == 2);
    CHECK(log.problems[0].byte_offset == static_cast<std::int64_t>(kStr.size()));
    std::size_t kept = log.records[1].payload.size();
    for (const ReadProblem& problem : log.problems) kept += problem.text.size();
    CHECK(kept == payload.size() + 1);  // and the line feed
    CHECK(log.records[2].line == 4);
  }
  SECTION("in its payload, many lines") {
    const ReadLog log = read(RecordText(std::string(3000, '\n')) + kStr);
    REQUIRE(log.records.size() == 2);
    CHECK(log.records[1].line == 3003);
    CHECK(std::count_if(log.problems.begin(), log.problems.end(), [](const ReadProblem& problem) {
            return problem.code == ImportCode::kPayloadWithoutRecord;
          }) > 0);
  }
  SECTION("in its header") {
    const ReadLog log = read(Header("\"str\": [\"" + payload + "\", 0]") + "\n" + kStr);
    REQUIRE(log.records.size() == 1);
    CHECK(log.records[0].line == 2);
    CHECK(log.problems[0].code == ImportCode::kLineTooLong);
    CHECK(log.problems[1].code == ImportCode::kBrokenHeader);
  }
}

TEST_CASE("Windows line ends are taken off, and CRs that are content stay", "[record_reader]") {
  Load load;
  const ReadLog log =
      load.Read(Header(HasPayload("one\ntwo")) + "\r\n" + TabLines("one\ntwo", "\r\n") +
                Header(HasPayload("a\r\nb\r")) + "\n" + TabLines("a\r\nb\r"));
  REQUIRE(log.records.size() == 2);
  CHECK(log.records[0].state == PayloadState::kCrRemoved);
  CHECK(log.records[0].payload == "one\ntwo");
  CHECK(log.records[1].state == PayloadState::kOk);
  CHECK(log.records[1].payload == "a\r\nb\r");
  CHECK(log.problems.empty());
}

TEST_CASE("A last line without LF is read", "[record_reader]") {
  Load load;
  std::string text = RecordText("one\ntwo");
  text.pop_back();
  const ReadLog log = load.Read(text);
  REQUIRE(log.records.size() == 1);
  CHECK(log.records[0].state == PayloadState::kOk);
  CHECK(log.records[0].payload == "one\ntwo");
  CHECK(log.line_count == 3);
}

TEST_CASE("NUL bytes are bytes like others", "[record_reader]") {
  using namespace std::string_literals;
  const std::string payload = "a\0b\n\0\n"s;
  Load load;
  const ReadLog log = load.Read("\0\0\n"s + RecordText(payload));
  REQUIRE(log.records.size() == 1);
  CHECK(log.records[0].payload == payload);
  CHECK(log.records[0].state == PayloadState::kOk);
  REQUIRE(log.problems.size() == 1);
  CHECK(log.problems[0].text == "\0\0\n"s);
  CHECK(log.problems[0].line == 1);
}

TEST_CASE("A payload that repeats is stored once: in a window, over windows, over files",
          "[record_reader]") {
  const std::string text = RecordText("same") + RecordText("other") + RecordText("same");
  for (const std::size_t window : {std::size_t{1}, RecordReader::kWindowBytes}) {
    Load load;
    const ReadLog log = load.Read(text, window);
    CAPTURE(window);
    REQUIRE(log.records.size() == 3);
    CHECK(log.records[0].is_new);
    CHECK_FALSE(log.records[2].is_new);
    CHECK(log.records[2].state == PayloadState::kOk);
    CHECK(log.records[2].payload_id == log.records[0].payload_id);
    CHECK(log.records[1].payload_id == 2);
    const ReadLog second = load.Read(text, window);
    CHECK_FALSE(second.records[0].is_new);
    CHECK(second.records[0].payload_id == 1);
    CHECK(second.records[1].payload_id == 2);
    CHECK(second.problems.empty());
  }
}

TEST_CASE("A damaged first copy does not stand for the good second one", "[record_reader]") {
  const std::string good = RecordText("the payload");
  const std::string bad = Header(HasPayload("the payload")) + "\n\tthe paXload\n";
  for (const std::size_t window : {std::size_t{1}, RecordReader::kWindowBytes}) {
    for (const std::string& text : {bad + good + bad + good, good + bad + good + bad}) {
      Load load;
      const ReadLog log = load.Read(text, window);
      CAPTURE(window, text);
      REQUIRE(log.records.size() == 4);
      const std::size_t good_first = text == bad + good + bad + good ? 1 : 0;
      CHECK(log.records[good_first].state == PayloadState::kOk);
      CHECK(log.records[good_first].payload == "the payload");
      CHECK(log.records[1 - good_first].state == PayloadState::kMismatch);
      CHECK(log.records[1 - good_first].payload == "the paXload");
      CHECK(log.records[good_first + 2].payload_id == log.records[good_first].payload_id);
      CHECK(log.records[3 - good_first].payload_id == log.records[1 - good_first].payload_id);
      CHECK(log.records[good_first].payload_id != log.records[1 - good_first].payload_id);
      REQUIRE(log.problems.size() == 2);
      CHECK(log.problems[0].code == ImportCode::kPayloadMismatch);
      CHECK(log.problems[0].message == "the payload does not have the MD5 that has_payload names");
      CHECK(log.problems[0].line == log.records[1 - good_first].line);
    }
  }
}

TEST_CASE("A payload that claims another one's hash does not take its row", "[record_reader]") {
  Load load;
  const ReadLog log = load.Read(RecordText("mine") + Header(HasPayload("other")) + "\n\tmine\n" +
                                RecordText("other"));
  REQUIRE(log.records.size() == 3);
  CHECK(log.records[1].state == PayloadState::kMismatch);
  CHECK(log.records[1].payload_id == log.records[0].payload_id);
  CHECK(log.records[2].state == PayloadState::kOk);
  CHECK(log.records[2].payload == "other");
}

TEST_CASE("RecordReader reports a damaged header with its lines and reads on", "[record_reader]") {
  const std::string broken = "V1121 08:30:01.000000 7 a.py:1] {\"str\": [\"a\"";
  Load load;
  const ReadLog log = load.Read(kStr + broken + "\n\tits payload\n" + kStr);
  REQUIRE(log.records.size() == 2);
  CHECK(log.records[1].line == 4);
  REQUIRE(log.problems.size() == 1);
  CHECK(log.problems[0].code == ImportCode::kBrokenHeader);
  CHECK(log.problems[0].message ==
        "the header's JSON is damaged; the line and its payload lines are kept as text");
  CHECK(log.problems[0].line == 2);
  CHECK(log.problems[0].byte_offset == static_cast<std::int64_t>(kStr.size()));
  CHECK(log.problems[0].line_count == 2);
  CHECK(log.problems[0].text == broken + "\n\tits payload");
}

TEST_CASE("A missing payload differs from one that the end of the file cut off",
          "[record_reader]") {
  const std::string header = Header(HasPayload("x")) + "\n";
  Load load;
  const ReadLog log = load.Read(header + kStr + header);
  REQUIRE(log.problems.size() == 2);
  CHECK(log.problems[0].code == ImportCode::kPayloadMissing);
  CHECK(log.problems[0].line == 1);
  CHECK(log.problems[0].message == "has_payload names a payload, but there are no payload lines");
  CHECK(log.problems[1].code == ImportCode::kPayloadTruncated);
  CHECK(log.problems[1].line == 3);
}

TEST_CASE("Payload lines in front of every record belong to nobody and are kept",
          "[record_reader]") {
  Load load;
  const ReadLog log = load.Read("\tone\n\ttwo\n" + kStr);
  REQUIRE(log.problems.size() == 1);
  CHECK(log.problems[0].code == ImportCode::kPayloadWithoutRecord);
  CHECK(log.problems[0].message == "payload lines without a record");
  CHECK(log.problems[0].text == "\tone\n\ttwo\n");
  CHECK(log.problems[0].line == 1);
  CHECK(log.problems[0].byte_offset == 0);
  CHECK(log.records.at(0).line == 3);
}

TEST_CASE("Input that breaks off delivers what came before and says so at the end",
          "[record_reader]") {
  Load load;
  const ReadLog log =
      load.Read(kStr + kStr, RecordReader::kWindowBytes, 10, "gzip: the data is cut");
  CHECK(log.records.size() == 2);
  REQUIRE(log.problems.size() == 1);
  CHECK(log.problems[0].code == ImportCode::kDamagedInput);
  CHECK(log.problems[0].message == "gzip: the data is cut");
  CHECK(log.problems[0].line == 2);
  CHECK(log.problems[0].byte_offset == static_cast<std::int64_t>(2 * kStr.size()));
}

TEST_CASE("An empty file has one window and nothing in it", "[record_reader]") {
  Load load;
  const ReadLog log = load.Read("");
  CHECK(log.records.empty());
  CHECK(log.problems.empty());
  CHECK(log.line_count == 0);
}
