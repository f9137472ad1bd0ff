// Logs of several ranks that an aggregator merged line by line, each line with its "[rankN]:".
#include <random>
#include <sstream>

#include "log/record_reader.h"
#include "tests/catch2.h"
#include "tests/log/read_log.h"

using namespace tlparse;  // NOLINT: a test

TEST_CASE("Payload lines with an aggregator's [rankN]: go to the record of that rank",
          "[interleaved_ranks]") {
  const std::string text = Header(HasPayload("a0\nb0"), "[rank0]:") + "\n" +
                           Header(HasPayload("a1\nb1"), "[rank1]:") + "\n" +
                           "[rank0]:\ta0\n[rank1]:\ta1\n[rank0]:\tb0\n[rank1]:\tb1\n";
  Load load;
  const ReadLog log = load.Read(text);
  REQUIRE(log.records.size() == 2);
  CHECK(log.problems.empty());
  CHECK(log.records[0].state == PayloadState::kOk);
  CHECK(log.records[0].payload == "a0\nb0");
  CHECK(log.records[1].payload == "a1\nb1");
}

TEST_CASE("Interleaved [rankN]: payload lines find their record over the border of a window",
          "[interleaved_ranks]") {
  const auto header = [](int rank, std::string_view members) {
    return Header(members, "[rank" + std::to_string(rank) + "]:") + "\n";
  };
  const std::string text = header(0, HasPayload("a0\nb0")) + header(1, HasPayload("a1\nb1")) +
                           header(2, "\"str\": [\"a\", 0]") +
                           "[rank1]:\ta1\n[rank0]:\ta0\nnoise\n[rank1]:\tb1\n" +
                           header(1, HasPayload("c1")) + "[rank0]:\tb0\n[rank1]:\tc1\n";
  for (std::size_t window = 1; window <= text.size() + 1; ++window) {
    Load load;
    const ReadLog log = load.Read(text, window);
    CAPTURE(window);
    REQUIRE(log.records.size() == 4);
    CHECK(log.records[0].payload == "a0\nb0");
    CHECK(log.records[1].payload == "a1\nb1");
    CHECK(log.records[3].payload == "c1");
    REQUIRE(log.problems.size() == 1);
    CHECK(log.problems[0].text == "noise\n");
  }
}

TEST_CASE("Ranks whose records overlap without end are read alike in windows of any size",
          "[interleaved_ranks]") {
  std::mt19937 random(3);
  std::vector<std::vector<std::string>> lines(4);  // by rank, the next one last
  for (int rank = 0; rank < 4; ++rank) {
    const std::string prefix = "[rank" + std::to_string(rank) + "]:";
    for (int number = 0; number < 12; ++number) {
      std::string payload = std::to_string(rank);
      for (auto line = random() % 6; line > 0; --line) payload += "\nline " + std::to_string(line);
      lines[static_cast<std::size_t>(rank)].push_back(Header(HasPayload(payload), prefix) + "\n");
      std::istringstream stream(TabLines(payload, "\n", prefix));
      for (std::string line; std::getline(stream, line);)
        lines[static_cast<std::size_t>(rank)].push_back(line + "\n");
    }
    std::reverse(lines[static_cast<std::size_t>(rank)].begin(),
                 lines[static_cast<std::size_t>(rank)].end());
  }
  std::string text;
  while (true) {
    std::erase_if(lines, [](const auto& left) { return left.empty(); });
    if (lines.empty()) break;
    std::vector<std::string>& rank = lines[random() % lines.size()];
    text += rank.back();
    rank.pop_back();
  }
  for (std::size_t window = 1; window < 3 * text.size(); window += 1 + window / 8) {
    Load load;
    const ReadLog log = load.Read(text, window);
    CAPTURE(window);
    CHECK(log.records.size() == 48);
    CHECK(log.problems.empty());
  }
}

TEST_CASE("A rank that fell silent does not hold the windows up", "[interleaved_ranks]") {
  const std::string silent = Header(HasPayload("never comes"), "[rank0]:") + "\n";
  std::string text = silent;
  while (text.size() < (12u << 20))
    text += Header("\"str\": [\"" + std::string(1000, 'x') + "\", 0]", "[rank1]:") + "\n";
  Load load;
  const ReadLog log = load.Read(text + "[rank0]:\tnever comes\n");
  CHECK(log.window_count > 3);
  CHECK(log.records.front().state == PayloadState::kAbsent);
  REQUIRE(log.problems.size() == 2);
  CHECK(log.problems[0].code == ImportCode::kPayloadMissing);
  CHECK(log.problems[1].text == "[rank0]:\tnever comes\n");  // too late, but kept
}

TEST_CASE("A record waits for payload lines that come long after it, whatever stands between",
          "[interleaved_ranks]") {
  std::string others;  // many times what is looked at first for the end of a window
  const std::string payload(1000, 'x');
  for (int number = 0; number < 300; ++number) {
    others += Header(HasPayload(payload), "[rank1]:") + "\n";
    others += TabLines(payload, "\n", "[rank1]:");
  }
  const std::string text = Header(HasPayload("a0\nb0"), "[rank0]:") + "\n[rank0]:\ta0\n" + others +
                           "[rank0]:\tb0\n" + Header(HasPayload("c0"), "[rank0]:") +
                           "\n[rank0]:\tc0\n" + others;
  for (const std::size_t window : {std::size_t{1} << 10, std::size_t{100} << 10,
                                   std::size_t{300} << 10, RecordReader::kWindowBytes}) {
    Load load;
    const ReadLog log = load.Read(text, window);
    CAPTURE(window);
    REQUIRE(log.records.size() == 602);
    CHECK(log.problems.empty());
    CHECK(log.records[0].payload == "a0\nb0");
    CHECK(log.records[0].state == PayloadState::kOk);
    CHECK(log.records[301].payload == "c0");
    CHECK(log.records[301].line == 604);
    CHECK(log.line_count == 1205);
  }
}

TEST_CASE("A payload torn into very many lines takes no more than its size",
          "[interleaved_ranks]") {
  std::string payload;
  while (payload.size() < 1'500'000)
    payload += "line of a payload " + std::to_string(payload.size()) + "\n";
  Load load;
  const ReadLog log = load.Read(Header(HasPayload(payload), "[rank7]:") + "\n" +
                                TabLines(payload, "\n", "[rank7]:"));
  REQUIRE(log.records.size() == 1);
  CHECK(log.records[0].payload == payload);
  CHECK(log.problems.empty());
}
